#pragma once
/// How long the steps of a plan took, by the events of a job's chips.

#include <cstdint>
#include <map>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

/// Of one step of a plan, all its executions in the runs that count.
struct StepTimes {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t waited_ns = 0;  ///< of these, for other chips
  std::int64_t median_ns = 0;
};

/// The runs of one plan of which the rings have every step. The first of each chip is left out
/// where it has others: it touches memory for the first time.
struct PlanTimes {
  std::vector<StepTimes> steps{};  ///< by step of the plan; update_wait: waits for commits
  std::uint64_t runs = 0;          ///< of all chips together
  int chips = 0;                   ///< which have such runs
  std::int64_t run_ns = 0;         ///< of all runs together
  std::int64_t median_run_ns = 0;
  std::int64_t other_ns = 0;  ///< of run_ns, what is in no step: run_ns is the sum of all
};

/// `fingerprint`: its low half, by which events know programs. Throws corrupt where the events are
/// of steps that the plan hasn't got.
PlanTimes plan_times(const Snapshot& job, std::uint64_t fingerprint, const Plan& plan);

/// By the low half of a program's fingerprint: how long its runs took, but for the first of each
/// chip, with or without events of their steps.
std::map<std::uint64_t, std::int64_t> run_times(const Snapshot& job);

}  // namespace weft
