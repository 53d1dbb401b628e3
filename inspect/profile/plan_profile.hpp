#pragma once
/// `weft plan --profile`: what each step of a plan costs, how long it took, and how near to the
/// machine's limit that is.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/profile/step_times.hpp"
#include "inspect/programs/job_programs.hpp"
#include "spmd/plan/step_cost.hpp"

namespace weft {

/// How fast a chip reads and writes what takes so many bytes again and again: small ones lie in a
/// near cache.
struct MemoryRate {
  std::int64_t bytes = 0;
  double bytes_per_s = 0;
};

/// What a chip can do at most while it has a core.
struct ChipLimits {
  double f32_flops = 0;              ///< a second
  double bf16_flops = 0;             ///< of products
  std::vector<MemoryRate> memory{};  ///< at least one; the smallest, which is the fastest, first
  double core_share = 1;             ///< of the time; below 1 where chips take turns
  std::string from{};                ///< how these are known, for people

  /// Of f64 half as many as of f32.
  double flops(DType dtype) const;
  /// A second, of a step that has so many: the rate of the largest that isn't larger.
  double bytes(std::int64_t step_bytes) const;
};

/// What limits a step: which of the two takes longer at the machine's limit.
enum class Bound : std::uint8_t { nothing, compute, memory };
/// "", "compute", "memory".
std::string_view to_string(Bound bound) noexcept;

/// One step of the plan. Rates are those of its median time.
struct ProfiledStep {
  StepKind kind = StepKind::compute;
  std::string op{};     ///< "multiply and 3 more"
  std::string type{};   ///< of the result; of a product those of its operands
  std::string place{};  ///< "train.cpp:41"
  StepCost cost{};
  StepTimes times{};
  double share = 0;     ///< of the time of all runs
  double flops = 0;     ///< a second; 0 where it was never executed
  double bytes = 0;     ///< a second
  double of_limit = 0;  ///< the least time that the limits allow, by the median
  Bound bound = Bound::nothing;
};

struct PlanProfile {
  ProgramEntry program{};
  std::vector<ProfiledStep> steps{};
  PlanTimes times{};
  ChipLimits limits{};
  // Of a mean run; a step counts as often as it was executed.
  double run_flops = 0;
  double run_bytes = 0;
  double run_s = 0;
  double of_limit = 0;  ///< the least time of all steps, by that in which the chip has a core
};

PlanProfile profile_of(const ProgramEntry& program, const Plan& plan, const PlanTimes& times,
                       const ChipLimits& limits);

std::string profile_text(const Snapshot& job, const PlanProfile& profile);
/// As weft.profile/1.
std::string profile_json(const Snapshot& job, const PlanProfile& profile);
/// A roofline as an SVG document: a point for each step that has arithmetic.
std::string roofline_svg(const Snapshot& job, const PlanProfile& profile);

}  // namespace weft
