#include <weft/inspect/export_stablehlo.hpp>

#include "spmd/plan/settle.hpp"
#include "spmd/stablehlo/stablehlo.hpp"
#include "spmd/stablehlo/stablehlo_target.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

ExportedStep export_stablehlo(const CompiledFunction& function, std::source_location loc) {
  const Trace& trace = Trace::current(loc);
  const Program& traced = function.last_program(loc);
  const Mesh* const of_loop = trace.runtime().mesh();
  const Mesh mesh = of_loop != nullptr ? *of_loop : Mesh({1}, {"data"});
  const Plan plan = compile_settled(traced, mesh, kStableHloTarget);
  const Program& program = plan.program;
  StableHlo made = to_stablehlo(program, mesh, "step");
  ExportedStep step{.text = std::move(made.text),
                    .arguments = {},
                    .results = {},
                    .mesh_shape = mesh.shape(),
                    .axis_names = mesh.axis_names()};
  for (const StableHloArgument& argument : made.arguments) {
    const ProgramInput& input = program.inputs[argument.number];
    step.arguments.push_back({input.name, std::string(to_string(input.kind)), argument.type,
                              plan.input_types[argument.number],
                              input.sharding.to_string(mesh, argument.type.shape.size())});
  }
  for (const StableHloResult& result : made.results) {
    if (result.role == StableHloResult::Role::faults) {
      const Sharding whole = Sharding::closed();
      step.results.push_back({.name = "faults",
                              .type = result.type,
                              .global = result.type,
                              .sharding = whole.to_string(mesh, result.type.shape.size()),
                              .is_fault = true});
      continue;
    }
    const ProgramOutput& output = program.outputs[result.number];
    step.results.push_back({.name = output.name,
                            .updates = output.updates,
                            .type = result.type,
                            .global = plan.output_types[result.number],
                            .sharding = output.sharding.to_string(mesh, result.type.shape.size())});
  }
  return step;
}

}  // namespace weft
