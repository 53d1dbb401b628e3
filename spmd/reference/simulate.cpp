#include <algorithm>
#include <cmath>
#include <limits>

#include "spmd/control/manual_axes.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/program/permute.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/reference/iterate.hpp"
#include "spmd/reference/shards.hpp"

namespace weft {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

class Simulation {
 public:
  Simulation(const Program& program, const Mesh& mesh) : program_(program), mesh_(mesh) {}

  ChipElements run(OpId op, std::span<const ChipElements> values) const {
    const OpKind kind = program_.kind(op);
    if (is_collective(kind)) return collective(op, values[program_.op_operands(op)[0]]);
    if (kind == OpKind::enter) return entered(op, values[program_.op_operands(op)[0]]);
    if (kind == OpKind::leave) return left(op, values[program_.op_operands(op)[0]]);
    ChipElements result;
    for (int position = 0; position < mesh_.size(); ++position) {
      std::vector<const Elements*> operands;
      for (const ValueId operand : program_.op_operands(op)) {
        operands.push_back(&values[operand][index(position)]);
      }
      const auto places = place_on_chip(program_, op, &mesh_, position);
      result.push_back(evaluate({program_, op, operands, places}));
    }
    return result;
  }

 private:
  ChipElements collective(OpId op, const ChipElements& x) const {
    const Words attrs = program_.op_attrs(op);
    if (program_.kind(op) == OpKind::collective_permute) return permute(attrs, x);
    const Evaluate::Group together = row(program_.kind(op)).evaluate->group;
    const AtomList atoms = atoms_of(attrs[0]);
    ChipElements result;
    for (int position = 0; position < mesh_.size(); ++position) {
      std::vector<Elements> parts;
      for (const int member : mesh_.group(position, atoms)) parts.push_back(x[index(member)]);
      result.push_back(together(program_, op, parts, mesh_.index_in(position, atoms)));
      const DType dtype = program_.type(program_.result(op)).dtype;
      for (double& element : result.back()) element = wrapped(dtype, element);
    }
    return result;
  }

  ChipElements permute(Words attrs, const ChipElements& x) const {
    std::vector<AtomList> sides;
    for (const std::int64_t bits : attrs) sides.push_back(atoms_of(bits));
    const std::span<const AtomList> all(sides);
    const std::size_t num_dims = sides.size() / 2;
    ChipElements result;
    for (const int source : permute_sources(mesh_, all.first(num_dims), all.last(num_dims))) {
      result.push_back(x[index(source)]);
    }
    return result;
  }

  Sharding sharding_of_dims(OpId op) const {
    Sharding sharding;
    const Words dims = program_.op_attrs(op).subspan(1);
    for (std::size_t dim = 0; dim < dims.size(); ++dim) sharding.dims[dim] = atoms_of(dims[dim]);
    return sharding;
  }

  ChipElements entered(OpId op, const ChipElements& x) const {
    const Shape& whole = program_.shape(program_.op_operands(op)[0]);
    const Sharding sharding = sharding_of_dims(op);
    ChipElements parts;
    for (int position = 0; position < mesh_.size(); ++position) {
      parts.push_back(take(x[index(position)], box(whole, program_.shape(program_.result(op)),
                                                   sharding.offsets(mesh_, position, whole))));
    }
    return parts;
  }

  /// Computes the op `leave`: joins the parts that the chips of each group have. Chips with the
  /// same part have equal values, so their order doesn't matter.
  ChipElements left(OpId op, const ChipElements& x) const {
    const Shape& part = program_.shape(program_.op_operands(op)[0]);
    const Shape& whole = program_.shape(program_.result(op));
    const Sharding sharding = sharding_of_dims(op);
    ChipElements wholes;
    for (int position = 0; position < mesh_.size(); ++position) {
      Elements& joined = wholes.emplace_back(index(whole.num_elements()));
      for (const int member : mesh_.group(position, atoms_of(program_.op_attrs(op)[0]))) {
        put(joined, box(whole, part, sharding.offsets(mesh_, member, whole)), x[index(member)]);
      }
    }
    return wholes;
  }

  static AtomList atoms_of(std::int64_t bits) {
    return AtomList::from_bits(static_cast<std::uint64_t>(bits));
  }

  const Program& program_;
  const Mesh& mesh_;
};

}  // namespace

std::vector<Elements> interpret(const Program& program, const Mesh& mesh,
                                std::span<const Elements> inputs) {
  if (!ManualAxes::has_any(program)) return interpret(program, inputs);
  std::vector<ChipElements> values(program.num_values());
  WEFT_CHECK(inputs.size() == program.inputs.size(), inputs.size(), program.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values[program.inputs[i].value] = ChipElements(index(mesh.size()), inputs[i]);
  }
  const Simulation simulation(program, mesh);
  run_ops(program, values, index(mesh.size()), [&](OpId op) { return simulation.run(op, values); });
  std::vector<Elements> outputs;
  for (const ProgramOutput& output : program.outputs) {
    const ChipElements& all = values[output.value];
    for (const Elements& other : all) {
      const bool agrees = std::ranges::equal(other, all[0], [](double a, double b) {
        return a == b || (std::isnan(a) && std::isnan(b));
      });
      WEFT_CHECK(agrees, output.name);
    }
    outputs.push_back(all[0]);
  }
  return outputs;
}

std::vector<Elements> simulate(const Program& chip_program, const Mesh& mesh,
                               std::span<const TensorType> input_types,
                               std::span<const TensorType> output_types,
                               std::span<const Elements> inputs) {
  if (input_types.size() != chip_program.inputs.size() || inputs.size() != input_types.size() ||
      output_types.size() != chip_program.outputs.size()) {
    fail(Errc::invalid_argument,
         "simulate: {} inputs, {} input types and {} output types are given for a program with {} "
         "inputs and {} outputs",
         inputs.size(), input_types.size(), output_types.size(), chip_program.inputs.size(),
         chip_program.outputs.size());
  }
  std::vector<ChipElements> values(chip_program.num_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ProgramInput& input = chip_program.inputs[i];
    values[input.value] =
        cut_shards(mesh, inputs[i],
                   {input.name, input_types[i], chip_program.type(input.value), input.sharding});
  }
  const Simulation simulation(chip_program, mesh);
  run_ops(chip_program, values, static_cast<std::size_t>(mesh.size()),
          [&](OpId op) { return simulation.run(op, values); });
  std::vector<Elements> outputs;
  for (std::size_t i = 0; i < output_types.size(); ++i) {
    const ProgramOutput& output = chip_program.outputs[i];
    outputs.push_back(join_shards(
        mesh, values[output.value],
        {output.name, output_types[i], chip_program.type(output.value), output.sharding}));
  }
  return outputs;
}

}  // namespace weft
