#pragma once
/// Makes a plan with the steps of a program, but without memory for the program's values.

#include <utility>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/fusion/fuse.hpp"
#include "spmd/plan/schedule.hpp"

namespace weft::testing {

inline Plan scheduled(Program program) {
  Plan plan;
  plan.program = std::move(program);
  plan.slots.resize(plan.program.num_values());
  const std::vector<bool> tiled = tiled_values(plan.program, kCpuTarget);
  for (std::size_t value = 0; value < tiled.size(); ++value) {
    if (tiled[value]) plan.slots[value].place = Place::tile;
  }
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    plan.slots[plan.program.outputs[i].value] = {Place::output, i};
  }
  schedule(plan, Mesh({1}, {"data"}), kCpuTarget);
  return plan;
}

}  // namespace weft::testing
