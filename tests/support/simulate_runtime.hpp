#pragma once
/// A Runtime that compiles for a mesh and runs all its chips in the simulator.

#include <map>
#include <string>

#include <weft/spmd/passes/plan.hpp>
#include <weft/tests/support/interpret_runtime.hpp>

namespace weft::testing {

class SimulateRuntime : public InterpretRuntime {
 public:
  explicit SimulateRuntime(const Mesh& mesh) : InterpretRuntime(mesh) {}

  std::map<std::string, Plan> plans;  ///< by fingerprint

 protected:
  Execution execute(const Program& program, std::span<const Elements> inputs) override {
    const std::string key = fingerprint(program).to_string();
    auto found = plans.find(key);
    if (found == plans.end()) found = plans.emplace(key, compile(program, *mesh())).first;
    const Plan& plan = found->second;
    Execution execution{
        .outputs = simulate(plan.program, *mesh(), plan.input_types, plan.output_types, inputs),
        .input_shardings = {},
        .output_shardings = {}};
    for (const ProgramInput& input : plan.program.inputs) {
      execution.input_shardings.push_back(input.sharding);
    }
    for (const ProgramOutput& output : plan.program.outputs) {
      execution.output_shardings.push_back(output.sharding);
    }
    return execution;
  }
};

}  // namespace weft::testing
