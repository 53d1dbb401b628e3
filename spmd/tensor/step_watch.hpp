#pragma once
/// StepWatch: warns of legal but probably unintended uses in a loop's steps. For the files of this
/// folder.

#include <cstdint>
#include <set>
#include <source_location>
#include <string>

#include "spmd/program/program.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// One per trace. Each warning is given once; for uneven outputs once per line.
class StepWatch {
 public:
  explicit StepWatch(Runtime& runtime) : runtime_(runtime) {}

  /// Called with the number of ops recorded since the last run, the last one at `loc`. Throws
  /// invalid_argument above kOpsMax, before the memory is full.
  void recorded(std::uint32_t ops, const std::source_location& loc) {
    if (ops >= ops_noted_at_) note_ops(ops, loc);
  }
  void ran(const RunSite& site) {
    if (++runs_ == kRunsWarned) note_runs(site);
  }
  void step_ended() { runs_ = 0; }
  /// `value` is kept as an output without a requested layout.
  void output(const Program& program, ValueId value);

  static constexpr std::uint32_t kOpsWarned = 20'000;
  static constexpr std::uint32_t kOpsMax = 2'000'000;
  static constexpr std::uint64_t kRunsWarned = 10'000;

 private:
  void note_ops(std::uint32_t ops, const std::source_location& loc);
  void note_runs(const RunSite& site);

  Runtime& runtime_;
  std::uint32_t ops_noted_at_ = kOpsWarned;
  std::uint64_t runs_ = 0;  // in this step
  bool warned_of_runs_ = false;
  std::set<std::string> uneven_;  // lines
};

}  // namespace weft
