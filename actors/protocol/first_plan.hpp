#pragma once
/// The plan of a loop's first step, for `weft plan -- ./program`.

#include <cstdint>
#include <string>

#include "spmd/plan/plan.hpp"

namespace weft {

/// How a job ends whose first step is planned. Failures with this message end the job, as they
/// would repeat.
inline constexpr const char* kIsPlanned =
    "the first step is planned, and not run: WEFT_PLAN_TO is set";

/// The folder of WEFT_PLAN_TO; "" where it isn't set.
std::string plan_folder();

struct FirstPlan {
  const Plan& plan;
  std::string site;  ///< of the call that would have run it
  int num_workers = 1;
  int chips_per_worker = 1;
  bool keeps_state = false;       ///< in two versions
  std::uint64_t arena_bytes = 0;  ///< the most that a chip may take
  double compile_seconds = 0;
};

/// Writes first.weftplan and then first.json. Throws io.
void write_first_plan(const std::string& folder, const FirstPlan& first);

}  // namespace weft
