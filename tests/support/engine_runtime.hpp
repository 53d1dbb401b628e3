#pragma once
/// A Runtime that compiles for one chip and runs its engine, with the kernels of the process's
/// path.

#include "spmd/plan/plan.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/interpret_runtime.hpp"

namespace weft::testing {

class EngineRuntime : public InterpretRuntime {
 public:
  EngineRuntime() : InterpretRuntime(Mesh({1}, {"data"})), engines_(*mesh()) {}

 protected:
  Execution execute(const Program& program, const Fingerprint& /*key*/,
                    std::span<const Elements> inputs, const RunSite& /*site*/) override {
    const Plan plan = compile(program, *mesh());
    Execution execution;
    execution.outputs =
        join(plan, *mesh(), engines_.run(plan, inputs, EngineMesh::Schedule::one_thread));
    for (const ProgramInput& input : plan.program.inputs) {
      execution.input_shardings.push_back(input.sharding);
    }
    for (const ProgramOutput& output : plan.program.outputs) {
      execution.output_shardings.push_back(output.sharding);
    }
    return execution;
  }

 private:
  EngineMesh engines_;
};

}  // namespace weft::testing
