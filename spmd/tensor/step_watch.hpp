#pragma once
/// StepWatch: warns of uses of tensors in a training loop that are legal but probably unintended.
/// StepClosures: the functions given to add_step_closure(). Only the files of this folder use them.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <source_location>
#include <string>
#include <utility>

#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Each trace has one StepWatch. It gives each warning once, but the warning of uneven outputs once
/// per source line of the user.
class StepWatch {
 public:
  explicit StepWatch(Runtime& runtime) : runtime_(runtime) {}

  /// Called after each recorded op, with the op's line and the number of ops recorded since the
  /// last run. Throws invalid_argument if there are more than kOpsMax ops, before memory runs out.
  void recorded(std::uint32_t ops, const std::source_location& loc) {
    if (ops >= ops_noted_at_) note_ops(ops, loc);
  }
  void ran(const RunSite& site) {
    if (++runs_ == kRunsWarned) note_runs(site);
  }
  void step_ended() { runs_ = 0; }
  /// Called when a gradient, taken at `gradient`, repeats what was already computed for a read at
  /// `read`.
  void computed_again(const std::source_location& read, const std::source_location& gradient);
  /// Called when `value` is kept as an output without a requested layout.
  void output(const Program& program, ValueId value);

  static constexpr std::uint32_t kOpsWarned = 20'000;
  static constexpr std::uint32_t kOpsMax = 2'000'000;
  static constexpr std::uint64_t kRunsWarned = 10'000;

 private:
  void note_ops(std::uint32_t ops, const std::source_location& loc);
  void note_runs(const RunSite& site);

  Runtime& runtime_;
  std::uint32_t ops_noted_at_ = kOpsWarned;
  std::uint64_t runs_ = 0;  // number of runs in this step
  bool warned_of_runs_ = false;
  bool warned_of_reads_ = false;
  std::set<std::string> uneven_;  // lines that the user was already warned of
};

/// Holds the closures and runs them in the order in which they were added.
class StepClosures {
 public:
  void add(std::function<void()> closure) { waiting_.push_back(std::move(closure)); }
  /// Called when a step ends. Runs the closures of the steps before it.
  void step_ended();
  /// Runs the closures of ended steps, unless it is called from within a closure.
  void catch_up();
  /// Runs the remaining closures.
  void finish() { run(waiting_.size()); }

 private:
  void run(std::size_t count);

  std::deque<std::function<void()>> waiting_;
  std::size_t ended_ = 0;  // number of waiting closures whose steps have ended
  bool is_running_ = false;
};

/// Warns of ops that the thread's loop has recorded and no program has run. Called at the end of
/// the loop.
void warn_of_unrun();

}  // namespace weft
