#pragma once
/// Computes the durations of a plan's steps from the events of a job's chips.

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
  std::int64_t waited_ns = 0;  ///< the part spent waiting for other chips
  std::int64_t median_ns = 0;
};

/// The times of those runs of one plan for which the rings have the events of every step. The first
/// run of each chip is omitted if the chip has others, because that run touches memory for the
/// first time.
struct PlanTimes {
  std::vector<StepTimes> steps{};  ///< by step of the plan; update_wait has the waits for commits
  std::uint64_t runs = 0;          ///< number of runs of all chips
  int chips = 0;                   ///< number of chips with such runs
  std::int64_t run_ns = 0;         ///< total time of all runs
  std::int64_t median_run_ns = 0;
  std::int64_t other_ns = 0;  ///< the part of run_ns that is outside of all steps
};

/// Computes the times of a plan. `fingerprint` is the low half of the program's fingerprint, by
/// which events identify programs. Throws corrupt if events have steps that the plan lacks.
PlanTimes plan_times(const Snapshot& job, std::uint64_t fingerprint, const Plan& plan);

/// Returns the total time of each program's runs, by the low half of its fingerprint. The first run
/// of each chip is omitted; runs count with or without events of their steps.
std::map<std::uint64_t, std::int64_t> run_times(const Snapshot& job);

}  // namespace weft
