#pragma once
/// StepTimes: computes how long a plan's steps took from the events of a job's chips.

#include <cstdint>
#include <map>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

/// All executions of one step of a plan, in the runs that count.
struct StepTimes {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t waited_ns = 0;  ///< how much of total_ns the steps waited for other chips
  std::int64_t median_ns = 0;
};

/// The times of the runs of one plan. A run counts if the rings have the events of all of its
/// steps. The first run of each chip doesn't count if the chip has others, because it touches
/// memory for the first time.
struct PlanTimes {
  std::vector<StepTimes> steps{};  ///< by step of the plan; update_wait has the waits for commits
  std::uint64_t runs = 0;          ///< number of runs of all chips
  int chips = 0;                   ///< number of chips with such runs
  std::int64_t run_ns = 0;         ///< total time of all runs
  std::int64_t median_run_ns = 0;
  std::int64_t other_ns = 0;  ///< how much of run_ns is outside of all steps
};

/// Computes the times of a plan. `fingerprint` is the low half of the program's fingerprint, by
/// which events identify programs. Throws corrupt if an event names a step that the plan lacks.
PlanTimes plan_times(const Snapshot& job, std::uint64_t fingerprint, const Plan& plan);

/// Returns the total time of each program's runs, by the low half of its fingerprint. Omits the
/// first run of each chip. Counts runs even without events of their steps.
std::map<std::uint64_t, std::int64_t> run_times(const Snapshot& job);

}  // namespace weft
