#include <algorithm>
#include <array>
#include <vector>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/passes/partition.hpp"

namespace weft {
namespace {

AtomList atoms_at(const Program& program, OpId op) {
  return AtomList::from_bits(static_cast<std::uint64_t>(program.op_attrs(op)[0]));
}

bool has_to_be_lowered(const Program& program, OpId op, const Mesh& mesh) {
  return spans_tiers(meeting_atoms(program, op), mesh);
}

/// A run of consecutive atoms of a group that are of the same tier.
struct TierRun {
  AtomList atoms;
  Tier tier;
  std::int64_t chips;
};

std::vector<TierRun> runs_of(AtomList atoms, const Mesh& mesh) {
  std::vector<TierRun> runs;
  for (int i = 0; i < atoms.size(); ++i) {
    const Tier tier = tier_of(static_cast<AtomMask>(1U << atoms[i]), mesh);
    if (runs.empty() || runs.back().tier != tier) runs.push_back({{}, tier, 1});
    runs.back().atoms.push_back(atoms[i]);
    runs.back().chips *= mesh.atom_size(atoms[i]);
  }
  return runs;
}

/// Returns the indices of all `runs`: first runs between hosts, then runs within hosts, each in
/// order.
std::vector<std::size_t> hosts_first(const std::vector<TierRun>& runs) {
  std::vector<std::size_t> order;
  for (const Tier tier : {Tier::dcn, Tier::ici}) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].tier == tier) order.push_back(i);
    }
  }
  return order;
}

/// Returns the product of the numbers of chips of the runs before `run` that are in `done`.
std::int64_t chips_before(const std::vector<TierRun>& runs, const std::vector<bool>& done,
                          std::size_t run) {
  std::int64_t chips = 1;
  for (std::size_t i = 0; i < run; ++i) chips *= done[i] ? runs[i].chips : 1;
  return chips;
}

std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t size = 1;
  for (int dim = begin; dim < end; ++dim) size *= shape[dim];
  return size;
}

class TierLowering {
 public:
  TierLowering(const Program& program, const Mesh& mesh)
      : program_(program), mesh_(mesh), builder_(result_), value_of_(program.num_values(), kNoId) {}

  Program run() {
    result_.begin_from(program_);
    for (const ProgramInput& input : program_.inputs) {
      value_of_[input.value] = result_.add_input(program_.type(input.value), input.kind, input.name,
                                                 input.sharding, input.loc);
    }
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      value_of_[program_.result(op)] =
          has_to_be_lowered(program_, op, mesh_) ? lowered(op) : copied(op);
    }
    for (const ProgramOutput& output : program_.outputs) {
      result_.add_output(value_of_[output.value], output.name, output.sharding, output.updates);
    }
    return std::move(result_);
  }

 private:
  ValueId copied(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : program_.op_operands(op)) operands.push_back(value_of_[operand]);
    return result_.add_op(program_.kind(op), operands, program_.op_attrs(op),
                          program_.type(program_.result(op)), program_.op_locs[op]);
  }

  ValueId lowered(OpId op) {
    builder_.set_loc(program_.op_locs[op]);
    const auto attrs = program_.op_attrs(op);
    const ValueId x = value_of_[program_.op_operands(op)[0]];
    const AtomList atoms = atoms_at(program_, op);
    const auto number = [&](std::size_t i) { return static_cast<int>(attrs[i]); };
    switch (program_.kind(op)) {
      case OpKind::all_reduce: return all_reduce(x, atoms, static_cast<ReduceKind>(attrs[1]));
      case OpKind::all_gather: return all_gather(x, atoms, number(1));
      case OpKind::reduce_scatter:
        return reduce_scatter(x, atoms, static_cast<ReduceKind>(attrs[1]), number(2));
      default: return all_to_all(x, atoms, number(1), number(2));
    }
  }

  ValueId all_reduce(ValueId x, AtomList atoms, ReduceKind kind) {
    const AtomList hosts = mesh_.list(static_cast<AtomMask>(atoms.mask() & mesh_.dcn_atoms()));
    AtomList chips;  // the atoms within a host
    for (int i = 0; i < atoms.size(); ++i) {
      if (!hosts.contains(atoms[i])) chips.push_back(atoms[i]);
    }
    const TensorType type = builder_.type(x);
    if (type.bytes() <= kWholeBetweenHostsMax) {
      // The copy lets both all_reduces join buckets, because each value can be in only one bucket.
      const ValueId of_host = builder_.copy(builder_.all_reduce(mesh_, x, chips, kind));
      return builder_.all_reduce(mesh_, of_host, hosts, kind);
    }
    const std::int64_t parts = mesh_.count(chips);
    int dim = 0;
    while (dim < type.shape.size() && type.shape[dim] % parts != 0) ++dim;
    if (dim == type.shape.size()) {
      const ValueId flat = all_reduce(flat_in_parts(x, parts), atoms, kind);
      return shaped(without_padding(flat, type.num_elements()), type.shape);
    }
    const ValueId part = builder_.reduce_scatter(mesh_, x, chips, kind, dim);
    const ValueId sum = builder_.all_reduce(mesh_, part, hosts, kind);
    return builder_.all_gather(mesh_, sum, chips, dim);
  }

  /// Returns x flattened to one dim, padded with zeros to a multiple of `parts`.
  ValueId flat_in_parts(ValueId x, std::int64_t parts) {
    const TensorType type = builder_.type(x);
    const std::int64_t size = type.num_elements();
    const ValueId flat = shaped(x, {size});
    const std::int64_t missing = (parts - size % parts) % parts;
    if (missing == 0) return flat;
    const std::array<std::int64_t, 1> none{0};
    return builder_.pad(flat, builder_.constant(0, {type.dtype, {}}), none, std::array{missing},
                        none);
  }

  ValueId without_padding(ValueId flat, std::int64_t size) {
    if (builder_.type(flat).shape[0] == size) return flat;
    return builder_.slice(flat, std::array<std::int64_t, 1>{0}, std::array{size},
                          std::array<std::int64_t, 1>{1});
  }

  ValueId all_gather(ValueId x, AtomList atoms, int dim) {
    const std::vector<TierRun> runs = runs_of(atoms, mesh_);
    std::vector<bool> is_gathered(runs.size(), false);
    for (const std::size_t run : hosts_first(runs)) {
      // The dim consists of `outer` equal parts, because some runs before this run have already
      // been gathered. The pieces of this run are concatenated within each part.
      const std::int64_t outer = chips_before(runs, is_gathered, run);
      Shape whole = builder_.type(x).shape;
      whole[dim] *= runs[run].chips;
      x = outer == 1
              ? builder_.all_gather(mesh_, x, runs[run].atoms, dim)
              : shaped(builder_.all_gather(mesh_, rows_of(x, dim, outer), runs[run].atoms, 1),
                       whole);
      is_gathered[run] = true;
    }
    return x;
  }

  ValueId reduce_scatter(ValueId x, AtomList atoms, ReduceKind kind, int dim) {
    const std::vector<TierRun> runs = runs_of(atoms, mesh_);
    std::vector<bool> is_whole(runs.size(), true);
    std::vector<std::size_t> order = hosts_first(runs);
    std::ranges::reverse(order);
    for (const std::size_t run : order) {
      const std::int64_t outer = chips_before(runs, is_whole, run);
      Shape part = builder_.type(x).shape;
      part[dim] /= runs[run].chips;
      x = outer == 1 ? builder_.reduce_scatter(mesh_, x, runs[run].atoms, kind, dim)
                     : shaped(builder_.reduce_scatter(mesh_, rows_of(x, dim, outer),
                                                      runs[run].atoms, kind, 1),
                              part);
      is_whole[run] = false;
    }
    return x;
  }

  ValueId all_to_all(ValueId x, AtomList atoms, int split, int concat) {
    std::int64_t outer = 1;  // number of parts that earlier runs have put together
    for (const TierRun& run : runs_of(atoms, mesh_)) {
      x = outer == 1 ? builder_.all_to_all(mesh_, x, run.atoms, split, concat)
                     : all_to_all_within(x, run, split, concat, outer);
      outer *= run.chips;
    }
    return x;
  }

  /// Does the all_to_all of a run after others: the dim `concat` already has `outer` equal parts,
  /// and the pieces of the run's chips are put together within each part.
  ValueId all_to_all_within(ValueId x, const TierRun& run, int split, int concat,
                            std::int64_t outer) {
    const Shape shape = builder_.type(x).shape;
    Shape after = shape;
    after[split] /= run.chips;
    after[concat] *= run.chips;
    const std::int64_t inner = shape[concat] / outer;
    // Reshapes x to five dims: `split`, `concat`, and the dims before, between and after them,
    // merged. `outer` is a factor of the merged dim before `concat`.
    const auto [first, second] = std::minmax(split, concat);
    const std::int64_t before = product(shape, 0, first);
    const std::int64_t between = product(shape, first + 1, second);
    const std::int64_t last = product(shape, second + 1, shape.size());
    if (concat < split) {
      x = shaped(x, {before * outer, inner, between, shape[split], last});
      return shaped(builder_.all_to_all(mesh_, x, run.atoms, 3, 1), after);
    }
    x = shaped(x, {before, shape[split], between * outer, inner, last});
    return shaped(builder_.all_to_all(mesh_, x, run.atoms, 1, 3), after);
  }

  /// Returns x as a matrix whose rows are the `outer` equal parts along dim.
  ValueId rows_of(ValueId x, int dim, std::int64_t outer) {
    const Shape shape = builder_.type(x).shape;
    const std::int64_t rows = product(shape, 0, dim) * outer;
    const std::int64_t columns = shape[dim] / outer * product(shape, dim + 1, shape.size());
    return shaped(x, {rows, columns});
  }

  ValueId shaped(ValueId x, const Shape& shape) {
    return builder_.type(x).shape == shape ? x : builder_.reshape(x, shape);
  }

  const Program& program_;
  const Mesh& mesh_;
  Program result_;
  Builder builder_;
  std::vector<ValueId> value_of_;  // indexed by old value
};

}  // namespace

std::optional<Program> lower_tiers(const Program& chip_program, const Mesh& mesh) {
  for (OpId op = 0; op < chip_program.num_ops(); ++op) {
    if (has_to_be_lowered(chip_program, op, mesh)) return TierLowering(chip_program, mesh).run();
  }
  return {};
}

}  // namespace weft
