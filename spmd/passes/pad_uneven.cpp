#include "spmd/passes/pad_uneven.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "spmd/control/loops.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/infer.hpp"
#include "spmd/passes/canonicalize.hpp"
#include "spmd/passes/expand.hpp"
#include "spmd/passes/factors.hpp"

namespace weft {
namespace {

std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// Returns the sharding with which the output is stored. An output that updates an input has the
/// sharding of that input.
const Sharding& stored_sharding(const Program& program, const ProgramOutput& output) {
  return output.updates < 0 ? output.sharding
                            : program.inputs[static_cast<std::size_t>(output.updates)].sharding;
}

/// Returns the shape of all shards put together, including their padding.
Shape stored_shape(const Shape& shape, const Sharding& sharding, const Mesh& mesh) {
  Shape stored = shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    stored[dim] = round_up(shape[dim], mesh.count(sharding.dims[static_cast<std::size_t>(dim)]));
  }
  return stored;
}

bool takes_padding(const Program& program, OpId op) {
  const Pads pads = *row(program.kind(op)).pads;
  return pads == Pads::if_fill ? program.is_fill(op) : pads != Pads::no;
}

/// Returns for each factor whether the op allows padding along it. This requires that the factor's
/// dims have no other factor.
std::vector<bool> growing_factors(const Program& program, OpId op, const FactorRule& rule) {
  std::vector<bool> grows(rule.factors.size(), takes_padding(program, op));
  for (std::size_t factor = 0; factor < grows.size(); ++factor) {
    if (rule.factors[factor].type == FactorType::need_replication) grows[factor] = false;
  }
  for (const auto& tensor : rule.dims) {
    for (const auto& dim : tensor) {
      if (dim.size() == 1) continue;
      for (const int factor : dim) grows[static_cast<std::size_t>(factor)] = false;
    }
  }
  if (*row(program.kind(op)).spreads == Spreads::broadcast) {
    const Shape& from = program.shape(program.op_operands(op)[0]);
    const Shape& to = program.shape(program.result(op));
    for (int dim = 0; dim < from.size(); ++dim) {
      // An operand dim of size 1 that is repeated keeps size 1.
      if (from[dim] == to[static_cast<int>(program.op_attrs(op)[static_cast<std::size_t>(dim)])]) {
        continue;
      }
      for (const int factor : rule.dims[0][static_cast<std::size_t>(dim)]) {
        grows[static_cast<std::size_t>(factor)] = false;
      }
    }
  }
  return grows;
}

/// Computes for each dim of each value a number that must divide the dim's padded size.
class Multiples {
 public:
  Multiples(const Program& program, const Mesh& mesh)
      : program_(program), mesh_(mesh), multiples_(program.num_values()) {
    for (auto& dims : multiples_) dims.fill(1);
    for (const ProgramInput& input : program.inputs) mark(input.value, input.sharding);
    for (const ProgramOutput& output : program.outputs) {
      mark(output.value, stored_sharding(program, output));
    }
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (program.kind(op) != OpKind::sharding_constraint) continue;
      mark(program.result(op),
           program.constraints[static_cast<std::size_t>(program.op_attrs(op)[0])]);
    }
    if (uneven_) spread();
  }

  /// Returns whether a sharding divides some dim unevenly.
  bool uneven() const { return uneven_; }
  const FactorRule& rule(OpId op) const { return rules_[op]; }
  const std::vector<bool>& grows(OpId op) const { return grows_[op]; }

  std::int64_t padded_size(ValueId value, int dim) const {
    return round_up(program_.shape(value)[dim], multiples_[value][static_cast<std::size_t>(dim)]);
  }

  /// Returns the size of the factor in the padded program.
  std::int64_t padded_size(OpId op, std::size_t factor) const {
    std::int64_t size = rules_[op].factors[factor].size;
    if (!grows_[op][factor]) return size;
    for_dims_of(op, factor, [&](ValueId value, std::size_t dim) {
      size = std::max(size, padded_size(value, static_cast<int>(dim)));
    });
    return size;
  }

 private:
  void mark(ValueId value, const Sharding& sharding) {
    const Shape& shape = program_.shape(value);
    for (int dim = 0; dim < shape.size(); ++dim) {
      const auto d = static_cast<std::size_t>(dim);
      const std::int64_t parts = mesh_.count(sharding.dims[d]);
      multiples_[value][d] = std::lcm(multiples_[value][d], parts);
      uneven_ = uneven_ || shape[dim] % parts != 0;
    }
  }

  /// Propagates the numbers along factors, forward and backward through the ops, until nothing
  /// changes.
  void spread() {
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      rules_.push_back(factor_rule(program_, op));
      grows_.push_back(growing_factors(program_, op, rules_.back()));
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (OpId op = 0; op < program_.num_ops(); ++op) changed |= join(op);
      for (OpId op = program_.num_ops(); op-- > 0;) changed |= join(op);
    }
  }

  bool join(OpId op) {
    bool changed = false;
    for (std::size_t factor = 0; factor < grows_[op].size(); ++factor) {
      if (!grows_[op][factor]) continue;
      std::int64_t multiple = 1;
      for_dims_of(op, factor, [&](ValueId value, std::size_t dim) {
        multiple = std::lcm(multiple, multiples_[value][dim]);
      });
      for_dims_of(op, factor, [&](ValueId value, std::size_t dim) {
        changed |= multiples_[value][dim] != multiple;
        multiples_[value][dim] = multiple;
      });
    }
    return changed;
  }

  template <typename F>
  void for_dims_of(OpId op, std::size_t factor, F f) const {
    const auto operands = program_.op_operands(op);
    const auto& tensors = rules_[op].dims;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      const ValueId value = tensor < operands.size() ? operands[tensor] : program_.result(op);
      for (std::size_t dim = 0; dim < tensors[tensor].size(); ++dim) {
        if (std::ranges::count(tensors[tensor][dim], static_cast<int>(factor)) > 0) f(value, dim);
      }
    }
  }

  const Program& program_;
  const Mesh& mesh_;
  bool uneven_ = false;
  std::vector<std::array<std::int64_t, kDimCountMax>> multiples_;  // indexed by value
  std::vector<FactorRule> rules_;                                  // indexed by op
  std::vector<std::vector<bool>> grows_;                           // indexed by op and factor
};

class Padder {
 public:
  Padder(const Program& program, const Mesh& mesh, const Multiples& multiples)
      : program_(program),
        mesh_(mesh),
        multiples_(multiples),
        loops_(program),
        builder_(result_),
        versions_(program.num_values()) {
    result_.begin_from(program);
  }

  Program run() {
    for (const ProgramInput& input : program_.inputs) {
      const auto& [dtype, shape] = program_.type(input.value);
      versions_[input.value].push_back(
          result_.add_input({dtype, stored_shape(shape, input.sharding, mesh_)}, input.kind,
                            input.name, input.sharding, input.loc));
    }
    add_ops(0, program_.num_ops());
    builder_.set_loc(LocId{0});
    for (const ProgramOutput& output : program_.outputs) {
      const Shape stored =
          stored_shape(program_.shape(output.value), stored_sharding(program_, output), mesh_);
      result_.add_output(version(output.value, stored), output.name, output.sharding,
                         output.updates);
    }
    return std::move(result_);
  }

 private:
  void add_ops(OpId begin, OpId end) {
    for (OpId op = begin; op < end; ++op) {
      if (program_.kind(op) == OpKind::loop) {
        const LoopRange& range = loops_[loops_.at(op)];
        add_range(range, range.end, {}, 0);
        op = range.end - 1;
      } else if (program_.kind(op) == OpKind::cond) {
        const LoopRange& first = loops_[loops_.at(op)];
        const LoopRange& second = loops_[first.other];
        add_branches(first, second);
        op = second.end - 1;
      } else {
        add_op(op);
      }
    }
  }

  /// Adds a loop or a branch. For a branch, returns its new values for operand number `operand` of
  /// the merges. At the end, forgets the versions of outer values that were made in the range,
  /// because ops after the range can't read them.
  std::vector<ValueId> add_range(const LoopRange& range, OpId end, std::span<const OpId> merges,
                                 std::size_t operand) {
    const ValueId first = result_.num_values();
    add_op(range.begin);
    add_ops(range.begin + 1, end);
    std::vector<ValueId> merged;
    for (const OpId merge : merges) {
      merged.push_back(version(program_.op_operands(merge)[operand], padded_shape(merge, operand)));
    }
    for (ValueId value = 0; value < program_.num_values(); ++value) {
      const OpId maker = program_.defining_op(value);
      if (maker != kNoId && maker >= range.begin && maker < range.end) continue;
      std::erase_if(versions_[value], [&](ValueId made) { return made >= first; });
    }
    std::erase_if(masked_, [&](const auto& entry) { return entry.second >= first; });
    return merged;
  }

  void add_branches(const LoopRange& first, const LoopRange& second) {
    const std::vector<ValueId> a = add_range(first, first.end, second.nexts, 1);
    const std::vector<ValueId> b = add_range(second, second.body_end(), second.nexts, 2);
    const ValueId cond = versions_[program_.result(first.begin)].front();
    for (std::size_t i = 0; i < a.size(); ++i) add_op(second.nexts[i], {cond, a[i], b[i]});
  }

  void add_op(OpId op) {
    builder_.set_loc(program_.op_locs[op]);
    const auto operands = program_.op_operands(op);
    std::vector<ValueId> padded;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      padded.push_back(neutral_outside(op, i, version(operands[i], padded_shape(op, i))));
    }
    add_op(op, padded);
  }

  void add_op(OpId op, const std::vector<ValueId>& padded) {
    const ValueId value = program_.result(op);
    const TensorType type{program_.type(value).dtype, padded_shape(op, padded.size())};
    versions_[value].push_back(result_.add_op(program_.kind(op), padded,
                                              padded_attrs(op, padded, type.shape), type,
                                              program_.op_locs[op]));
  }

  /// Returns the padded shape of operand number `tensor`, or of the result if `tensor` is the
  /// number of operands.
  Shape padded_shape(OpId op, std::size_t tensor) const {
    const auto operands = program_.op_operands(op);
    const ValueId value = tensor < operands.size() ? operands[tensor] : program_.result(op);
    Shape shape = program_.shape(value);
    const auto& dims = multiples_.rule(op).dims[tensor];
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
      if (dims[dim].size() != 1) continue;
      shape[static_cast<int>(dim)] =
          multiples_.padded_size(op, static_cast<std::size_t>(dims[dim][0]));
    }
    return shape;
  }

  /// Returns the op's attributes, in which padded sizes replace the original sizes.
  std::vector<std::int64_t> padded_attrs(OpId op, std::span<const ValueId> operands,
                                         const Shape& shape) const {
    InplaceVector<const Shape*, kOperandCountMax> shapes;
    for (const ValueId operand : operands) shapes.push_back(&result_.shape(operand));
    return attrs_of_part(program_, op, {.operands = shapes, .result = shape});
  }

  /// Returns `padded` with the neutral element of the reduction in the padding of each dim that the
  /// op reduces. If the op's pads are Pads::with_zeros, fills the padding of all dims with zeros.
  ValueId neutral_outside(OpId op, std::size_t operand, ValueId padded) {
    const FactorRule& rule = multiples_.rule(op);
    const Shape& shape = program_.shape(program_.op_operands(op)[operand]);
    for (int dim = 0; dim < shape.size(); ++dim) {
      const auto& factors = rule.dims[operand][static_cast<std::size_t>(dim)];
      if (factors.size() != 1 || result_.shape(padded)[dim] == shape[dim]) continue;
      const Factor& factor = rule.factors[static_cast<std::size_t>(factors[0])];
      if (*row(program_.kind(op)).pads == Pads::with_zeros) {
        padded = masked(padded, dim, shape[dim], ReduceKind::add);
      } else if (factor.type == FactorType::reduction) {
        padded = masked(padded, dim, shape[dim], factor.reduce_kind);
      }
    }
    return padded;
  }

  ValueId masked(ValueId value, int dim, std::int64_t size, ReduceKind kind) {
    const auto [place, is_new] = masked_.try_emplace({value, dim, kind}, kNoId);
    if (!is_new) return place->second;
    const TensorType type = result_.type(value);
    const TensorType index{
        type.shape[dim] <= std::numeric_limits<std::int32_t>::max() ? DType::i32 : DType::i64,
        type.shape};
    const ValueId inside = builder_.compare(CompareDirection::lt, builder_.iota(index, dim),
                                            builder_.constant(static_cast<double>(size), index));
    place->second =
        builder_.select(inside, value, builder_.constant(neutral(kind, type.dtype), type));
    return place->second;
  }

  /// Returns the value in this shape, padded with zeros or cut.
  ValueId version(ValueId value, const Shape& shape) {
    std::vector<ValueId>& versions = versions_[value];
    const auto same =
        std::ranges::find_if(versions, [&](ValueId made) { return result_.shape(made) == shape; });
    if (same != versions.end()) return *same;
    const Shape made = result_.shape(versions.front());
    std::vector<std::int64_t> start(static_cast<std::size_t>(shape.size()), 0);
    std::vector<std::int64_t> kept;
    std::vector<std::int64_t> added;
    for (int dim = 0; dim < shape.size(); ++dim) {
      kept.push_back(std::min(made[dim], shape[dim]));
      added.push_back(shape[dim] - kept.back());
    }
    const std::vector<std::int64_t> ones(start.size(), 1);
    ValueId other = versions.front();
    if (Shape(kept) != made) other = builder_.slice(other, start, kept, ones);
    if (Shape(kept) != shape) {
      const ValueId zero = builder_.constant(0, {result_.type(other).dtype, {}});
      other = builder_.pad(other, zero, start, added, start);
    }
    versions.push_back(other);
    return other;
  }

  const Program& program_;
  const Mesh& mesh_;
  const Multiples& multiples_;
  const Loops loops_;
  Program result_;
  Builder builder_;
  std::vector<std::vector<ValueId>> versions_;  // indexed by old value; the first is the original
  std::map<std::tuple<ValueId, int, ReduceKind>, ValueId> masked_;
};

/// Returns whether the op is a composite that needs a padded dim undivided, and so couldn't tell
/// data from padding.
bool is_padded_where_whole(const Program& program, OpId op, const Multiples& multiples) {
  if (!is_composite(program.kind(op))) return false;
  const FactorRule& rule = multiples.rule(op);
  const auto operands = program.op_operands(op);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (int dim = 0; dim < program.shape(operands[i]).size(); ++dim) {
      if (multiples.padded_size(operands[i], dim) == program.shape(operands[i])[dim]) continue;
      for (const int factor : rule.dims[i][static_cast<std::size_t>(dim)]) {
        const FactorType type = rule.factors[static_cast<std::size_t>(factor)].type;
        if (type == FactorType::need_replication) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::optional<Program> pad_uneven(const Program& program, const Mesh& mesh) {
  const Multiples multiples(program, mesh);
  if (!multiples.uneven()) return std::nullopt;
  std::vector<bool> expanded(program.num_ops());
  for (OpId op = 0; op < program.num_ops(); ++op) {
    expanded[op] = is_padded_where_whole(program, op, multiples);
  }
  if (std::ranges::count(expanded, true) > 0) {
    return pad_uneven(canonicalize(expand_ops(program, expanded), true), mesh);
  }
  return Padder(program, mesh, multiples).run();
}

}  // namespace weft
