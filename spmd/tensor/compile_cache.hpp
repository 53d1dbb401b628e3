#pragma once
/// CompileCache: a runtime's compiled programs, and the reasons why it compiles another program.
/// ChangingNumbers: replaces programs that differ only in numbers by one program.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Returns the fingerprint of the program, ignoring the layouts of inputs and of outputs that
/// update inputs.
Fingerprint graph_key(Program program);

/// Each runtime has one CompileCache; only the thread of its training loop uses it.
class CompileCache {
 public:
  struct Entry {
    std::uint32_t number = 0;
    std::shared_ptr<const Plan> plan;
  };

  /// Returns the entry of a plan that serves the program; null if the program must be compiled. The
  /// pointer stays valid. A plan also serves a program that requests for some inputs the layouts
  /// that the plan gave them, as for parameters after the first step and other data kept on the
  /// chips.
  const Entry* find(const Program& program, const Fingerprint& key);
  /// Must be called before compiling a program that find() didn't find. If the same site has
  /// requested another program before, returns why a new one is needed ("recompile #2 for the
  /// sync() at train.cpp:41: ..."), for the first three recompiles of the site, the 10th, the
  /// 100th, and so on. Throws invalid_argument, with the reason, if the site may have no more
  /// programs.
  std::optional<std::string> explain(const Program& program, const RunSite& site);
  const Entry& add(const Program& program, const Fingerprint& key, const Entry& entry);

 private:
  /// The programs that one line of the user's source requested.
  struct History {
    int count = 0;
    std::deque<Program> last;
  };
  struct Compiled {
    std::vector<Sharding> asked;  // layouts requested for the inputs
    Entry entry;
  };
  std::map<Fingerprint, const Compiled*> by_key_;
  std::multimap<Fingerprint, Compiled> by_graph_;
  std::map<std::string, History> sites_;
};

/// A number on the host, such as a learning rate, is a constant of the program that reads it. If
/// one source line requests programs that differ only in such constants, the constants that changed
/// are inputs from the second program on, so that no third program is compiled for new values.
/// (torch_xla makes inputs of all numbers.) Each trace has one ChangingNumbers, so that all workers
/// of a job have the same history.
class ChangingNumbers {
 public:
  ChangingNumbers();
  ~ChangingNumbers();
  /// Calls Runtime::run() for the program, or for the same program with inputs in place of numbers.
  Runtime::RunResult run(Runtime& runtime, const Program& program, const Fingerprint& key,
                         std::span<const Binding> bindings, RunSite site);

 private:
  struct Form;
  struct Lifted;
  std::optional<Lifted> lift(const Program& program, const Fingerprint& key, const RunSite& site);

  struct Site {
    std::set<Fingerprint> constant;  ///< programs that run unchanged
    std::map<Fingerprint, std::unique_ptr<Form>> forms;
    Form* last = nullptr;
  };
  std::map<std::tuple<std::string_view, std::string_view, unsigned>, Site> sites_;
};

}  // namespace weft
