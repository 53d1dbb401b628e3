#include "spmd/passes/partition.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "spmd/control/loop_carries.hpp"
#include "spmd/control/loops.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/passes/assign.hpp"
#include "spmd/passes/factor_rules.hpp"
#include "spmd/passes/reshard.hpp"

namespace weft {
namespace {

class Partitioner {
 public:
  Partitioner(const Program& program, const Mesh& mesh, std::span<const Sharding> homes)
      : program_(program),
        mesh_(mesh),
        homes_(homes),
        loops_(program),
        builder_(chip_),
        versions_(program.num_values()),
        use_count_(program.num_values(), 0) {
    chip_.begin_from(program);
    for (const ValueId operand : program.operands) ++use_count_[operand];
    for (const ProgramOutput& output : program.outputs) ++use_count_[output.value];
  }

  Program run() {
    for (const ProgramInput& input : program_.inputs) add_input(input);
    lower_ops(0, program_.num_ops());
    for (const ProgramOutput& output : program_.outputs) add_output(output);
    return std::move(chip_);
  }

 private:
  /// A global value in one of its layouts on the chips. It may have several layouts at once.
  /// Partial sums of bf16 or f16 values may be f32, and are rounded after the reduction.
  struct Version {
    Sharding layout;
    ValueId value;
  };

  void add_input(const ProgramInput& input) {
    Sharding closed = homes_[input.value];
    closed.open_mask = 0;
    const ValueId value = chip_.add_input(even_type(program_.type(input.value), closed), input.kind,
                                          input.name, closed, input.loc);
    versions_[input.value].push_back({Sharding::closed(closed.dims), value});
  }

  void add_output(const ProgramOutput& output) {
    const Sharding closed = output.updates < 0
                                ? layout_of_output(output, homes_[output.value])
                                : chip_.inputs[static_cast<std::size_t>(output.updates)].sharding;
    const ValueId value = request(output.value, Sharding::closed(closed.dims));
    chip_.add_output(value, output.name, closed, output.updates);
  }

  /// Returns the type of a chip's part. The parts are even, because pad_uneven has padded the dims.
  TensorType even_type(const TensorType& global, const Sharding& layout) const {
    const TensorType type = chip_type(global, layout, mesh_);
    for (int dim = 0; dim < global.shape.size(); ++dim) {
      const std::int64_t parts = mesh_.count(layout.dims[static_cast<std::size_t>(dim)]);
      WEFT_CHECK(type.shape[dim] * parts == global.shape[dim], dim, global.shape[dim], parts);
    }
    return type;
  }

  void lower_ops(OpId begin, OpId end) {
    for (OpId op = begin; op < end; ++op) {
      if (program_.kind(op) == OpKind::loop) {
        lower_loop(loops_[loops_.at(op)]);
        op = loops_[loops_.at(op)].end - 1;
      } else if (program_.kind(op) == OpKind::cond) {
        const LoopRange& first = loops_[loops_.at(op)];
        lower_branches(first, loops_[first.other]);
        op = loops_[first.other].end - 1;
      } else {
        lower(op);
      }
    }
  }

  /// Lowers a loop. Reshards the initial values of its carries before the loop. After the loop,
  /// forgets the versions of outer values that were made in it.
  void lower_loop(const LoopRange& range) {
    for (const OpId carry : range.carries) {
      request(program_.op_operands(carry)[1], layout_of_carry(program_.result(carry)));
    }
    for (const auto& [sum, addend] : accumulations(program_, range, use_count_)) {
      accumulators_[sum] = addend;
    }
    const ValueId first = chip_.num_values();
    lower(range.begin);
    lower_ops(range.begin + 1, range.end);
    forget(range, first);
  }

  /// Forgets versions of outer values that were made in the range, where later ops can't read them.
  void forget(const LoopRange& range, ValueId first) {
    for (ValueId value = 0; value < program_.num_values(); ++value) {
      const OpId maker = program_.defining_op(value);
      if (maker != kNoId && maker >= range.begin && maker < range.end) continue;
      std::erase_if(versions_[value],
                    [&](const Version& version) { return version.value >= first; });
    }
  }

  /// Lowers both branches of a cond. Reshards values for merges in the branch that makes them.
  void lower_branches(const LoopRange& first, const LoopRange& second) {
    std::array<std::vector<ValueId>, 2> merged;
    for (std::size_t side = 0; side < merged.size(); ++side) {
      const LoopRange& branch = side == 0 ? first : second;
      const ValueId before = chip_.num_values();
      lower(branch.begin);
      lower_ops(branch.begin + 1, branch.body_end());
      for (const OpId merge : second.nexts) {
        merged[side].push_back(request(program_.op_operands(merge)[1 + side],
                                       layout_of_carry(program_.result(merge))));
      }
      forget(branch, before);
    }
    const ValueId cond = versions_[program_.result(first.begin)][0].value;
    for (std::size_t i = 0; i < second.nexts.size(); ++i) {
      const OpId merge = second.nexts[i];
      const Sharding layout = layout_of_carry(program_.result(merge));
      versions_[program_.result(merge)].push_back(
          {layout, emit(merge, std::array{cond, merged[0][i], merged[1][i]}, {}, layout)});
    }
  }

  /// Lowers an addition to a carry so that the carry stays a partial sum, which the chips reduce
  /// once, after the loop. Returns false if `op` can't be lowered so.
  bool accumulate(OpId op) {
    const auto found = accumulators_.find(op);
    if (found == accumulators_.end()) return false;
    const ValueId addend = found->second;
    const auto operands = program_.op_operands(op);
    const ValueId carry = operands[0] == addend ? operands[1] : operands[0];
    const Sharding whole = layout_of_carry(carry);
    if (!can_stay_unreduced(addend, whole, whole)) return false;
    Sharding partial = whole;
    partial.unreduced = unreduced(addend);
    std::vector<ValueId> local;
    for (const ValueId operand : operands) {
      local.push_back(request(operand, operand == carry ? whole : partial));
    }
    versions_[program_.result(op)].push_back({partial, emit(op, local, {}, partial)});
    return true;
  }

  Sharding layout_of_carry(ValueId carry) const {
    return homes_[carry].even(mesh_, program_.shape(carry));
  }

  /// Lowers a `carry` or a `next`. Its operands and its result get the carry's layout.
  void lower_carried(OpId op) {
    const auto operands = program_.op_operands(op);
    const bool is_next = program_.kind(op) == OpKind::next;
    Sharding layout = layout_of_carry(is_next ? operands[1] : program_.result(op));
    std::vector<Sharding> wanted(operands.size(), layout);
    wanted[0] = Sharding::closed();
    if (is_next && accumulators_.contains(program_.defining_op(operands[2]))) {
      layout.unreduced = wanted[2].unreduced = unreduced(operands[2]);
    }
    std::vector<ValueId> local;
    for (std::size_t i = 0; i < operands.size(); ++i)
      local.push_back(request(operands[i], wanted[i]));
    versions_[program_.result(op)].push_back({layout, emit(op, local, wanted, layout)});
  }

  void lower(OpId op) {
    const ValueId result = program_.result(op);
    lowered_in_ = loops_.of_op(op);
    if (program_.kind(op) == OpKind::carry || program_.kind(op) == OpKind::next) {
      return lower_carried(op);
    }
    if (is_made_on_demand(program_, result) || accumulate(op)) return;
    if (program_.kind(op) == OpKind::constant) {
      versions_[result].push_back({Sharding::closed(), emit(op, {}, {}, Sharding::closed())});
      return;
    }
    if (program_.kind(op) == OpKind::sharding_constraint) {
      const Sharding layout = Sharding::closed(homes_[result].dims);
      versions_[result].push_back({layout, request(program_.op_operands(op)[0], layout)});
      return;
    }
    if (program_.kind(op) == OpKind::enter || program_.kind(op) == OpKind::leave) {
      return lower_manual(op);
    }
    const FactorRule& rule = rules_.of(op);
    const std::vector<AtomList>& assignment = assignments_.of(rule, tensors(op));
    const auto operands = program_.op_operands(op);
    std::vector<Sharding> wanted;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      wanted.push_back(assigned_layout(rule, assignment, i));
    }
    Sharding layout = assigned_layout(rule, assignment, operands.size());
    sink_unreduced(op, wanted, layout);
    std::vector<ValueId> local_operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      local_operands.push_back(request(operands[i], wanted[i]));
    }
    versions_[result].push_back({layout, emit(op, local_operands, wanted, layout)});
  }

  /// Lowers an `enter` or a `leave` of a shard_map function. This needs no op, because a chip's
  /// part is the same inside and outside; only outside, its sharding has the manual atoms.
  void lower_manual(OpId op) {
    const bool enters = program_.kind(op) == OpKind::enter;
    const ValueId operand = program_.op_operands(op)[0];
    const ValueId part = enters ? program_.result(op) : operand;
    const Sharding inside = homes_[part].even(mesh_, program_.shape(part));
    Sharding outside;
    const Words attrs = program_.op_attrs(op);
    for (std::size_t dim = 0; dim + 1 < attrs.size(); ++dim) {
      outside.dims[dim] = AtomList::from_bits(static_cast<std::uint64_t>(attrs[dim + 1]));
      outside.dims[dim].append(inside.dims[dim]);
    }
    versions_[program_.result(op)].push_back(
        {enters ? inside : outside, request(operand, enters ? outside : inside)});
  }

  std::vector<OpTensor> tensors(OpId op) const {
    std::vector<OpTensor> tensors;
    const auto add = [&](ValueId value) {
      tensors.push_back({program_.type(value), homes_[value], is_made_anywhere(program_, value)});
    };
    for (const ValueId operand : program_.op_operands(op)) add(operand);
    add(program_.result(op));
    return tensors;
  }

  /// Appends the op to the chip's program. Only a gather needs the operands' layouts `wanted`.
  ValueId emit(OpId op, std::span<const ValueId> operands, std::span<const Sharding> wanted,
               const Sharding& layout) {
    TensorType type = even_type(program_.type(program_.result(op)), layout);
    const bool is_part = layout.unreduced != 0 && layout.reduce_kind == ReduceKind::add;
    if (is_part && has_wide_parts(program_, op)) type.dtype = DType::f32;
    return chip_.add_op(program_.kind(op), operands,
                        attrs_on_chip(op, operands, wanted, layout, type.shape), type,
                        program_.op_locs[op]);
  }

  /// Returns the op's attributes, in which the sizes and offsets are those of a chip's part.
  std::vector<std::int64_t> attrs_on_chip(OpId op, std::span<const ValueId> operands,
                                          std::span<const Sharding> wanted, const Sharding& layout,
                                          const Shape& shape) const {
    InplaceVector<const Shape*, kOperandCountMax> shapes;
    for (const ValueId operand : operands) shapes.push_back(&chip_.shape(operand));
    return attrs_of_part(
        program_, op,
        {.operands = shapes, .result = shape, .operand_layouts = wanted, .result_layout = &layout});
  }

  /// Delays a reduction past the op. The op then reads partial sums, and its result is a partial
  /// sum. This requires that the op is linear in the partial sums, that no other op reads them, and
  /// that the op's result isn't larger than they are.
  void sink_unreduced(OpId op, std::vector<Sharding>& wanted, Sharding& result) const {
    const auto operands = program_.op_operands(op);
    const ValueId value = program_.result(op);
    const DType dtype = program_.type(value).dtype;
    const Linearity& linear = *row(program_.kind(op)).linear;
    if (linear.holds != nullptr && !linear.holds(program_.op_attrs(op), dtype)) return;
    using In = Linearity::In;
    InplaceVector<std::size_t, kOperandCountMax> sunk;
    if (linear.in == In::first || linear.in == In::one) {
      const std::size_t candidates = linear.in == In::first ? 1 : operands.size();
      for (std::size_t i = 0; i < candidates && sunk.empty(); ++i) {
        const bool grows = program_.kind(op) != OpKind::stack &&
                           chip_type(program_.type(value), result, mesh_).bytes() >
                               chip_type(program_.type(operands[i]), wanted[i], mesh_).bytes();
        if (!grows && can_stay_unreduced(operands[i], wanted[i], result)) sunk.push_back(i);
      }
    } else if (linear.in == In::all_together && unreduced_alike(operands)) {
      const auto stay = [&](auto layout_of) {
        for (std::size_t i = 0; i < operands.size(); ++i) {
          if (!can_stay_unreduced(operands[i], layout_of(i), result)) return false;
        }
        return true;
      };
      const Sharding whole = result.without(unreduced(operands[0]));
      const bool as_it_is = stay([&](std::size_t i) { return wanted[i]; });
      if (!as_it_is) {
        // The result is to be sharded over the atoms of the partial sums, so a single
        // reduce_scatter of the result can replace one for each operand.
        const Sharding before = std::exchange(result, whole);
        if (stay([&](std::size_t) { return whole; })) {
          std::ranges::fill(wanted, whole);
        } else {
          result = before;
          return;
        }
      }
      for (std::size_t i = 0; i < operands.size(); ++i) sunk.push_back(i);
    }
    for (const std::size_t i : sunk) {
      wanted[i].unreduced = unreduced(operands[i]);
      result.unreduced = static_cast<AtomMask>(result.unreduced | wanted[i].unreduced);
    }
  }

  bool is_wide(ValueId value, const Version& version) const {
    return chip_.type(version.value).dtype != program_.type(value).dtype;
  }

  bool unreduced_alike(std::span<const ValueId> operands) const {
    return std::ranges::all_of(
        operands, [&](ValueId operand) { return unreduced(operand) == unreduced(operands[0]); });
  }

  /// Returns the atoms over which the first version of the value still has to be reduced.
  AtomMask unreduced(ValueId value) const {
    return versions_[value].empty() ? AtomMask{0} : versions_[value].front().layout.unreduced;
  }

  bool can_stay_unreduced(ValueId value, const Sharding& wanted, const Sharding& result) const {
    const AtomMask atoms = unreduced(value);
    if (atoms == 0 || use_count_[value] != 1 || is_wide(value, versions_[value][0])) return false;
    // A value that a loop reads from outside is reduced once, outside of the loop.
    if (loops_.of_value(value) != lowered_in_) return false;
    const Sharding& made = versions_[value].front().layout;
    if (made.reduce_kind != ReduceKind::add) return false;
    if ((atoms & (wanted.used() | result.used() | result.unreduced)) != 0) return false;
    Sharding partial = wanted;
    partial.unreduced = atoms;
    const auto steps =
        reshard_steps(mesh_, program_.type(value), made, partial, homes_[value].replicated);
    return std::ranges::all_of(steps,
                               [](const ReshardStep& step) { return !is_collective(step.kind); });
  }

  /// Returns the value in this layout. Reshards it at the lowest cost if no version has the layout.
  ValueId request(ValueId value, const Sharding& layout) {
    std::vector<Version>& versions = versions_[value];
    for (const Version& version : versions) {
      if (version.layout.same_layout(layout)) return version.value;
    }
    if (is_made_on_demand(program_, value)) {
      const OpId op = program_.defining_op(value);
      std::vector<ValueId> operands;
      for (const ValueId scalar : program_.op_operands(op)) {
        operands.push_back(request(scalar, Sharding::closed()));
      }
      versions.push_back({layout, emit(op, operands, {}, layout)});
      return versions.back().value;
    }
    const TensorType& type = program_.type(value);
    std::vector<Sharding> layouts;
    for (const Version& version : versions) layouts.push_back(version.layout);
    const auto [from, steps] =
        cheapest_reshard(mesh_, type, layouts, layout, homes_[value].replicated);
    Version made = versions[from];
    // Collectives get the source location of the op whose value they move.
    const OpId op = program_.defining_op(value);
    builder_.set_loc(op == kNoId ? LocId{0} : program_.op_locs[op]);
    for (const ReshardStep& step : steps) {
      made = {step.after, add_reshard(builder_, mesh_, step, made.layout, made.value)};
      if (made.layout.unreduced == 0 && is_wide(value, made)) {
        made.value = builder_.convert(made.value, type.dtype);
      }
      versions.push_back(made);
    }
    return made.value;
  }

  const Program& program_;
  const Mesh& mesh_;
  std::span<const Sharding> homes_;
  const Loops loops_;
  std::unordered_map<OpId, ValueId> accumulators_;  // key: an addition to a carry; its addend
  std::uint32_t lowered_in_ = kNoId;  // the innermost loop of the op that is being lowered
  FactorRules rules_{program_};
  FactorAssignments assignments_{mesh_};
  Program chip_;
  Builder builder_;
  // Indexed by global value. The first version is the one that the value's op made.
  std::vector<std::vector<Version>> versions_;
  std::vector<std::uint32_t> use_count_;
};

}  // namespace

TensorType chip_type(const TensorType& global, const Sharding& sharding, const Mesh& mesh) {
  const auto local = sharding.local_shape(mesh, global.shape);
  return {global.dtype,
          Shape(std::span(local).first(static_cast<std::size_t>(global.shape.size())))};
}

Program partition(const Program& program, const Mesh& mesh, std::span<const Sharding> shardings) {
  return Partitioner(program, mesh, shardings).run();
}

}  // namespace weft
