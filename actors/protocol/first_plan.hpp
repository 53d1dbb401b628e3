#pragma once
/// Writes the plan of a loop's first step, for `weft plan -- ./program`.

#include <cstdint>
#include <string>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns the folder from WEFT_PLAN_TO; "" if the variable isn't set.
std::string plan_folder();

struct FirstPlan {
  const Plan& plan;
  std::string site;  ///< the call that would have run the plan
  int num_workers = 1;
  int chips_per_worker = 1;
  bool keeps_state = false;       ///< the state is kept in two versions
  std::uint64_t arena_bytes = 0;  ///< the limit on a chip's memory for tensors
  double compile_seconds = 0;
};

/// Returns whether the folder already has a plan of write_first_plan(). Returns false for "".
bool has_first_plan(const std::string& folder);

/// Writes first.weftplan, then first.json. Throws io.
void write_first_plan(const std::string& folder, const FirstPlan& first);

}  // namespace weft
