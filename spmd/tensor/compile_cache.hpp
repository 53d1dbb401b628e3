#pragma once
/// CompileCache: a runtime's compiled programs, and the reasons for compiling another one.
/// ChangingNumbers: how programs that differ by numbers alone become one.

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

/// The fingerprint without the layouts of the inputs and of the outputs that update them.
Fingerprint graph_key(Program program);

/// One per runtime; used by its loop's thread.
class CompileCache {
 public:
  struct Entry {
    std::uint32_t number = 0;
    std::shared_ptr<const Plan> plan;
  };

  /// Null if the program must be compiled; the pointer stays valid. A plan also serves a program
  /// that differs only in inputs requested with the layout that the plan gave them: parameters
  /// after the first step, and other data kept on the chips.
  const Entry* find(const Program& program, const Fingerprint& key);
  /// Comes before a program that find() hasn't got is compiled: says why, if another one of the
  /// same site is here already ("recompile #2 for the sync() at train.cpp:41: ..."). Of many at a
  /// site it says the first three, the 10th, the 100th, and so on. Throws
  /// invalid_argument, with that reason, where the site may have no more programs.
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

/// A number of the host's, such as a rate, is a constant of the program that reads it. Where a line
/// requests programs that are alike but for such constants, those that have changed become inputs
/// with the second of the programs, and it is the last that is compiled. (torch_xla makes inputs of
/// all numbers.) One per trace, so that all workers of a loop see the same history.
class ChangingNumbers {
 public:
  ChangingNumbers();
  ~ChangingNumbers();
  /// Runtime::run(), of the program or of the one that has inputs for numbers.
  Runtime::RunResult run(Runtime& runtime, const Program& program, const Fingerprint& key,
                         std::span<const Binding> bindings, RunSite site);

 private:
  struct Form;
  struct Lifted;
  std::optional<Lifted> lift(const Program& program, const Fingerprint& key, const RunSite& site);

  struct Site {
    std::set<Fingerprint> constant;  ///< programs that are run as they are
    std::map<Fingerprint, std::unique_ptr<Form>> forms;
    Form* last = nullptr;
  };
  std::map<std::tuple<std::string_view, std::string_view, unsigned>, Site> sites_;
};

}  // namespace weft
