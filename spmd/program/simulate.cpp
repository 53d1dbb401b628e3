#include <algorithm>
#include <cmath>
#include <limits>

#include <weft/spmd/program/evaluate.hpp>
#include <weft/spmd/program/evaluate_composite.hpp>
#include <weft/spmd/program/evaluate_index.hpp>
#include <weft/spmd/program/infer.hpp>
#include <weft/spmd/program/permute.hpp>

namespace weft {
namespace {

using Dims = std::span<const std::int64_t>;
/// A value on every chip, by position.
using ChipElements = std::vector<Elements>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Offsets, in a tensor of shape `whole`, of the elements of a box of shape `part` at `at`.
std::vector<std::int64_t> box(const Shape& whole, const Shape& part, Dims at) {
  const std::vector<std::int64_t> strides = row_major_strides(whole);
  std::int64_t first = 0;
  for (int dim = 0; dim < whole.size(); ++dim) first += at[index(dim)] * strides[index(dim)];
  std::vector<std::int64_t> where = offsets(part, strides);
  for (std::int64_t& offset : where) offset += first;
  return where;
}

/// Part `i` of `parts` equal ones along `dim`.
std::vector<std::int64_t> part_of(const Shape& whole, int dim, std::int64_t i, std::int64_t parts) {
  Shape part = whole;
  part[dim] /= parts;
  std::array<std::int64_t, kDimCountMax> at{};
  at[index(dim)] = i * part[dim];
  return box(whole, part, at);
}

void scatter(Elements& to, const std::vector<std::int64_t>& where, const Elements& elements) {
  for (std::size_t i = 0; i < where.size(); ++i) to[index(where[i])] = elements[i];
}

/// Joins equal parts along `dim` to a tensor of shape `whole`.
Elements concatenate(const std::vector<Elements>& parts, const Shape& whole, int dim) {
  Elements result(index(whole.num_elements()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto part = static_cast<std::int64_t>(i);
    scatter(result, part_of(whole, dim, part, static_cast<std::int64_t>(parts.size())), parts[i]);
  }
  return result;
}

class Simulation {
 public:
  Simulation(const Program& program, const Mesh& mesh) : program_(program), mesh_(mesh) {}

  ChipElements run(OpId op, std::span<const ChipElements> values) const {
    if (is_collective(program_.kind(op))) {
      return collective(op, values[program_.op_operands(op)[0]]);
    }
    ChipElements result;
    for (int position = 0; position < mesh_.size(); ++position) {
      std::vector<const Elements*> operands;
      for (const ValueId operand : program_.op_operands(op)) {
        operands.push_back(&values[operand][index(position)]);
      }
      result.push_back(local(op, position, operands));
    }
    return result;
  }

 private:
  Elements local(OpId op, int position, std::span<const Elements* const> operands) const {
    const Dims attrs = program_.op_attrs(op);
    const Shape& shape = program_.shape(program_.result(op));
    if (program_.kind(op) == OpKind::all_slice) {
      const AtomList atoms = atoms_of(attrs[0]);
      const Shape& whole = program_.shape(program_.op_operands(op)[0]);
      return take(*operands[0], part_of(whole, static_cast<int>(attrs[1]),
                                        mesh_.index_in(position, atoms), mesh_.count(atoms)));
    }
    switch (program_.kind(op)) {
      case OpKind::iota: {
        Elements result = evaluate(program_, op, operands);
        shift(result, first(position, attrs[1], shape[static_cast<int>(attrs[0])]));
        return result;
      }
      case OpKind::rng_bit_generator: return random_part(position, attrs, shape, *operands[0]);
      case OpKind::gather: {
        const Shape& table = program_.shape(program_.op_operands(op)[0]);
        Elements rows = *operands[1];
        shift(rows, -first(position, attrs[0], table[0]));
        return evaluate(program_, op, std::array<const Elements*, 2>{operands[0], &rows});
      }
      case OpKind::scatter: {
        Elements rows = *operands[0];
        shift(rows, -first(position, attrs[1], attrs[0]));
        return evaluate(program_, op, std::array<const Elements*, 2>{&rows, operands[1]});
      }
      case OpKind::attention:
        return evaluate_composite(program_, op, operands, first(position, attrs[2], shape[2]));
      default: return evaluate(program_, op, operands);
    }
  }

  /// Where the chip's part of a dim begins that `atoms` shard, `size` of it on each chip.
  std::int64_t first(int position, std::int64_t atoms, std::int64_t size) const {
    return mesh_.index_in(position, atoms_of(atoms)) * size;
  }

  static void shift(Elements& elements, std::int64_t by) {
    for (double& element : elements) element += static_cast<double>(by);
  }

  /// The chip's part of what is drawn for the whole tensor.
  Elements random_part(int position, Dims atoms, const Shape& part, const Elements& state) const {
    Shape whole = part;
    std::array<std::int64_t, kDimCountMax> at{};
    for (int dim = 0; dim < part.size(); ++dim) {
      whole[dim] *= mesh_.count(atoms_of(atoms[index(dim)]));
      at[index(dim)] = first(position, atoms[index(dim)], part[dim]);
    }
    return take(random_bits(whole, state), box(whole, part, at));
  }

  ChipElements collective(OpId op, const ChipElements& x) const {
    const Dims attrs = program_.op_attrs(op);
    if (program_.kind(op) == OpKind::collective_permute) return permute(attrs, x);
    const Shape& operand_shape = program_.shape(program_.op_operands(op)[0]);
    const Shape& result_shape = program_.shape(program_.result(op));
    const AtomList atoms = atoms_of(attrs[0]);
    ChipElements result;
    for (int position = 0; position < mesh_.size(); ++position) {
      const std::vector<int> group = mesh_.group(position, atoms);
      const auto count = static_cast<std::int64_t>(group.size());
      const std::int64_t self = mesh_.index_in(position, atoms);
      std::vector<Elements> parts;
      for (const int member : group) parts.push_back(x[index(member)]);
      switch (program_.kind(op)) {
        case OpKind::all_reduce:
          result.push_back(reduce(static_cast<ReduceKind>(attrs[1]), parts));
          break;
        case OpKind::reduce_scatter:
          result.push_back(take(reduce(static_cast<ReduceKind>(attrs[1]), parts),
                                part_of(operand_shape, static_cast<int>(attrs[2]), self, count)));
          break;
        case OpKind::all_gather:
          result.push_back(concatenate(parts, result_shape, static_cast<int>(attrs[1])));
          break;
        default:
          for (Elements& part : parts) {
            part = take(part, part_of(operand_shape, static_cast<int>(attrs[1]), self, count));
          }
          result.push_back(concatenate(parts, result_shape, static_cast<int>(attrs[2])));
      }
    }
    return result;
  }

  ChipElements permute(Dims attrs, const ChipElements& x) const {
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

  /// In group order, so that every member gets the same bits.
  static Elements reduce(ReduceKind kind, const std::vector<Elements>& parts) {
    Elements total = parts[0];
    for (std::size_t part = 1; part < parts.size(); ++part) {
      for (std::size_t i = 0; i < total.size(); ++i) {
        total[i] = combine(kind, total[i], parts[part][i]);
      }
    }
    return total;
  }

  static AtomList atoms_of(std::int64_t bits) {
    return AtomList::from_bits(static_cast<std::uint64_t>(bits));
  }

  const Program& program_;
  const Mesh& mesh_;
};

void check_shard(const Mesh& mesh, std::string_view name, const TensorType& global,
                 const TensorType& local, const Sharding& sharding) {
  bool fits = global.dtype == local.dtype && global.shape.size() == local.shape.size();
  if (fits) {
    const auto shard = sharding.local_shape(mesh, global.shape);
    fits = std::ranges::equal(local.shape, std::span(shard).first(index(local.shape.size())));
  }
  if (!fits) {
    fail(Errc::invalid_argument,
         "simulate: \"{}\" is {} on a chip, which isn't a shard of {} by {}", name,
         local.to_string(), global.to_string(), sharding.to_string(mesh, local.shape.size()));
  }
}

/// The shape of the shards put together: the global one, or with padding behind it.
Shape stored_shape(const Mesh& mesh, const Shape& local, const Sharding& sharding) {
  Shape stored = local;
  for (int dim = 0; dim < local.size(); ++dim) stored[dim] *= mesh.count(sharding.dims[index(dim)]);
  return stored;
}

/// Nothing may depend on what lies in the padding, so it isn't zero.
ChipElements cut(const Mesh& mesh, const Elements& whole, const TensorType& global,
                 const Shape& local, const Sharding& sharding) {
  const Shape stored = stored_shape(mesh, local, sharding);
  Elements padded(index(stored.num_elements()),
                  is_floating(global.dtype) ? std::numeric_limits<double>::quiet_NaN() : 1);
  const std::array<std::int64_t, kDimCountMax> origin{};
  scatter(padded, box(stored, global.shape, origin), whole);
  ChipElements shards;
  for (int position = 0; position < mesh.size(); ++position) {
    shards.push_back(
        take(padded, box(stored, local, sharding.offsets(mesh, position, global.shape))));
  }
  return shards;
}

Elements join(const Mesh& mesh, const ChipElements& shards, const Shape& global, const Shape& local,
              const Sharding& sharding, std::string_view name) {
  const Shape stored = stored_shape(mesh, local, sharding);
  Elements whole(index(stored.num_elements()));
  std::vector<bool> written(whole.size(), false);
  for (int position = 0; position < mesh.size(); ++position) {
    const Elements& shard = shards[index(position)];
    const auto where = box(stored, local, sharding.offsets(mesh, position, global));
    for (std::size_t i = 0; i < where.size(); ++i) {
      double& element = whole[index(where[i])];
      const bool agrees = element == shard[i] || (std::isnan(element) && std::isnan(shard[i]));
      WEFT_CHECK(!written[index(where[i])] || agrees, name, position, where[i], element, shard[i]);
      element = shard[i];
      written[index(where[i])] = true;
    }
  }
  const std::array<std::int64_t, kDimCountMax> origin{};
  return take(whole, box(stored, global, origin));
}

}  // namespace

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
    check_shard(mesh, input.name, input_types[i], chip_program.type(input.value), input.sharding);
    if (static_cast<std::int64_t>(inputs[i].size()) != input_types[i].num_elements()) {
      fail(Errc::invalid_argument, "simulate: input {} \"{}\" is {} but {} elements are given", i,
           input.name, input_types[i].to_string(), inputs[i].size());
    }
    values[input.value] =
        cut(mesh, inputs[i], input_types[i], chip_program.shape(input.value), input.sharding);
  }
  const Simulation simulation(chip_program, mesh);
  for (OpId op = 0; op < chip_program.num_ops(); ++op) {
    values[chip_program.result(op)] = simulation.run(op, values);
  }
  std::vector<Elements> outputs;
  for (std::size_t i = 0; i < output_types.size(); ++i) {
    const ProgramOutput& output = chip_program.outputs[i];
    check_shard(mesh, output.name, output_types[i], chip_program.type(output.value),
                output.sharding);
    outputs.push_back(join(mesh, values[output.value], output_types[i].shape,
                           chip_program.shape(output.value), output.sharding, output.name));
  }
  return outputs;
}

}  // namespace weft
