#pragma once
/// Makes and describes plans for tests, from a chip's program whose inputs and outputs aren't
/// shards.

#include <string>
#include <vector>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/plan/plan.hpp"

namespace weft::testing {

/// Returns the plan of the program, after verify() has checked it.
inline Plan chip_plan(const Program& program, const Mesh& mesh, const Target& target = kCpuTarget) {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  for (const ProgramInput& input : program.inputs) inputs.push_back(program.type(input.value));
  for (const ProgramOutput& output : program.outputs) outputs.push_back(program.type(output.value));
  Plan plan = make_plan(program, mesh, inputs, outputs, target);
  verify(plan, mesh);
  return plan;
}

/// Returns the kinds of the steps, such as "loop collective update_wait loop".
inline std::string kinds_of(const Plan& plan) {
  std::string kinds;
  for (const PlanStep& step : plan.steps) {
    if (!kinds.empty()) kinds += ' ';
    kinds += to_string(step.kind);
  }
  return kinds;
}

}  // namespace weft::testing
