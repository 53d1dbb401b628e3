#include "spmd/reference/interpret.hpp"

#include <weft/tensor/error.hpp>

#include "spmd/reference/iterate.hpp"

namespace weft {
namespace {

void check_inputs(const Program& program, std::span<const Elements> inputs) {
  if (inputs.size() != program.inputs.size()) {
    fail(Errc::invalid_argument, "interpret: {} inputs are given, but the program has {}",
         inputs.size(), program.inputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = program.type(program.inputs[i].value);
    if (static_cast<std::int64_t>(inputs[i].size()) != type.num_elements()) {
      fail(Errc::invalid_argument, "interpret: input {} \"{}\" is {} but {} elements are given", i,
           program.inputs[i].name, type.to_string(), inputs[i].size());
    }
  }
}

}  // namespace

std::vector<Elements> interpret(const Program& program, std::span<const Elements> inputs) {
  check_inputs(program, inputs);
  std::vector<ChipElements> values(program.num_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[program.inputs[i].value] = {inputs[i]};
  run_ops(program, values, 1, [&](OpId op) {
    const OpKind kind = program.kind(op);
    const Attrs& attrs = *row(kind).attrs;
    if (kind == OpKind::enter || is_collective(kind) ||
        depends_on_chip(attrs, program.op_attrs(op))) {
      fail(Errc::invalid_argument,
           "interpret: op {} is {}; use simulate for the program of one chip, and pass the mesh "
           "for a program with functions of shard_map",
           op, to_string(kind));
    }
    std::vector<const Elements*> operands;
    for (const ValueId operand : program.op_operands(op)) operands.push_back(&values[operand][0]);
    const auto places = place_on_chip(program, op, nullptr, 0);
    return ChipElements{evaluate({program, op, operands, places})};
  });
  std::vector<Elements> outputs;
  for (const ProgramOutput& output : program.outputs) outputs.push_back(values[output.value][0]);
  return outputs;
}

}  // namespace weft
