#pragma once
/// PlanProfile: makes the data of `weft plan --profile`: the cost of each step of a plan, the time
/// that the step took, and how close this is to the machine's limit.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/profile/step_times.hpp"
#include "inspect/programs/job_programs.hpp"
#include "spmd/plan/step_cost.hpp"

namespace weft {

/// The rate at which a chip repeatedly reads and writes `bytes` bytes of memory. A small range of
/// memory stays in a fast cache.
struct MemoryRate {
  std::int64_t bytes = 0;
  double bytes_per_s = 0;
};

/// The maximum rates of a chip while it has a core.
struct ChipLimits {
  double f32_flops = 0;              ///< operations per second
  double bf16_flops = 0;             ///< operations per second in matrix products
  std::vector<MemoryRate> memory{};  ///< from the smallest and fastest; not empty
  double core_share = 1;             ///< share of time with a core; below 1 if chips share cores
  std::string from{};                ///< where the limits come from, for people

  /// Returns the maximum rate of operations for the dtype. The rate of f64 is half that of f32.
  double flops(DType dtype) const;
  /// Returns the bytes per second of a step that touches `step_bytes` bytes: the rate of the
  /// largest entry of `memory` that isn't larger than the step.
  double bytes(std::int64_t step_bytes) const;
};

/// The resource that limits a step. At the machine's maximum rates, the step needs more time for
/// this resource than for the other one.
enum class Bound : std::uint8_t { nothing, compute, memory };
/// Returns "", "compute" or "memory".
std::string_view to_string(Bound bound) noexcept;

/// One step of the plan. Rates follow from the step's median time.
struct ProfiledStep {
  StepKind kind = StepKind::compute;
  std::string op{};     ///< "multiply and 3 more"
  std::string type{};   ///< type of the result; for a product, types of the operands
  std::string place{};  ///< "train.cpp:41"
  StepCost cost{};
  StepTimes times{};
  double share = 0;     ///< share of the time of all runs
  double flops = 0;     ///< operations per second; 0 if the step was never executed
  double bytes = 0;     ///< bytes per second
  double of_limit = 0;  ///< shortest possible time by the limits / median time
  Bound bound = Bound::nothing;
};

struct PlanProfile {
  ProgramEntry program{};
  std::vector<ProfiledStep> steps{};
  PlanTimes times{};
  ChipLimits limits{};
  // The next four numbers are for an average run, in which each step counts as often as it was
  // executed.
  double run_flops = 0;
  double run_bytes = 0;
  double run_s = 0;
  double of_limit = 0;  ///< shortest possible time by the limits / time with a core
};

PlanProfile profile_of(const ProgramEntry& program, const Plan& plan, const PlanTimes& times,
                       const ChipLimits& limits);

std::string profile_text(const Snapshot& job, const PlanProfile& profile);
/// Returns the document weft.profile/1.
std::string profile_json(const Snapshot& job, const PlanProfile& profile);
/// Returns a roofline as an SVG document, with a point for each step that has arithmetic.
std::string roofline_svg(const Snapshot& job, const PlanProfile& profile);

}  // namespace weft
