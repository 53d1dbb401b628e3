/// Defines the ops that read or write parts of a tensor at positions given by an operand.

#include <algorithm>
#include <optional>
#include <vector>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/index_check.hpp"

namespace weft {
namespace {

using namespace infer;

// The following functions infer the type of an op's result.

void expect_index(const OpSignature& op, std::size_t operand) {
  if (op.operands[operand].dtype != DType::i32) {
    reject(op, "the index is {}; it must be i32", op.operands[operand].to_string());
  }
}

TensorType gathered(const OpSignature& op) {
  expect_index(op, 1);
  expect_atom_lists(op, op.attrs);
  const auto& [dtype, table] = op.operands[0];
  const Shape& index = op.operands[1].shape;
  if (table.size() == 0) reject(op, "the table has no rows; it needs at least one dim");
  std::vector<std::int64_t> shape(index.begin(), index.end());
  shape.insert(shape.end(), table.begin() + 1, table.end());
  if (shape.size() > kDimCountMax) {
    reject(op, "the result would have {} dims; at most {} are supported", shape.size(),
           kDimCountMax);
  }
  return {dtype, Shape(Words(shape))};
}

TensorType scattered(const OpSignature& op) {
  expect_index(op, 0);
  expect_atom_lists(op, op.attrs.subspan(1));
  const Shape& index = op.operands[0].shape;
  const auto& [dtype, updates] = op.operands[1];
  if (dtype == DType::pred) reject(op, "pred can't be added; convert it first");
  if (op.attrs[0] < 0) reject(op, "{} rows; expected 0 or more", op.attrs[0]);
  bool fits = updates.size() >= index.size();
  for (int dim = 0; fits && dim < index.size(); ++dim) fits = updates[dim] == index[dim];
  if (!fits) reject(op, "the dims of the index must be the first of the updates");
  std::vector<std::int64_t> shape{op.attrs[0]};
  shape.insert(shape.end(), updates.begin() + index.size(), updates.end());
  if (shape.size() > kDimCountMax) {
    reject(op, "the result would have {} dims; at most {} are supported", shape.size(),
           kDimCountMax);
  }
  return {dtype, Shape(Words(shape))};
}

/// Checks that the operands from `first` on are i32 scalars, one for each dim of operand 0.
void expect_starts(const OpSignature& op, std::size_t first) {
  const auto dims = op.operands.empty() ? 0 : op.operands[0].shape.size();
  if (op.operands.size() != first + static_cast<std::size_t>(dims)) {
    reject(op, "has {} operands; it takes {}", op.operands.size(),
           first + static_cast<std::size_t>(dims));
  }
  for (std::size_t i = first; i < op.operands.size(); ++i) {
    if (op.operands[i] != TensorType{DType::i32, {}}) {
      reject(op, "the start of dim {} is {}; it must be i32[]", i - first,
             op.operands[i].to_string());
    }
  }
}

void expect_part(const OpSignature& op, Words part) {
  const Shape& whole = op.operands[0].shape;
  bool fits = static_cast<int>(part.size()) == whole.size();
  for (int dim = 0; fits && dim < whole.size(); ++dim) {
    const std::int64_t size = part[static_cast<std::size_t>(dim)];
    fits = size >= 0 && size <= whole[dim];
  }
  if (!fits) {
    reject(op, "sizes [{}] aren't one for each dim of {}, from 0 to the dim's",
           fmt::join(part, ","), op.operands[0].to_string());
  }
}

TensorType dynamic_part(const OpSignature& op) {
  expect_starts(op, 1);
  expect_part(op, op.attrs);
  return {op.operands[0].dtype, Shape(op.attrs)};
}

TensorType updated(const OpSignature& op) {
  expect_starts(op, 2);
  expect_part(op, op.operands[1].shape);
  if (op.operands[1].dtype != op.operands[0].dtype) {
    reject(op, "the update must have dtype {}", to_string(op.operands[0].dtype));
  }
  return op.operands[0];
}

TensorType checked(const OpSignature& op) {
  if (op.operands[0].dtype != DType::i32) reject(op, "the index must be i32");
  return op.operands[0];
}

// The following functions return the factor rules of ops.

/// Returns a rule in which dims that are taken completely can be sharded, because their start is
/// clamped to 0.
FactorRule dynamic_slice_rule(const Program& program, OpId op) {
  const Shape& from = program.shape(program.op_operands(op)[0]);
  const Shape& to = program.shape(program.result(op));
  RuleMaker rule;
  rule.add_tensor(from);
  for (int dim = 0; dim < from.size(); ++dim) rule.add_tensor({});
  rule.add_tensor(to);
  const auto result = static_cast<std::size_t>(1 + from.size());
  for (int dim = 0; dim < from.size(); ++dim) {
    const bool is_whole = from[dim] == to[dim];
    const auto type = is_whole ? FactorType::pass_through : FactorType::need_replication;
    const int factor = rule.add_factor(from[dim], type);
    rule.put(0, dim, factor);
    rule.put(result, dim, is_whole ? factor : rule.add_factor(to[dim], type));
  }
  return rule.take();
}

/// Returns a rule in which dims that the update fills can be sharded. Other dims can't be, although
/// each chip could write its own part if it had the whole update.
FactorRule dynamic_update_slice_rule(const Program& program, OpId op) {
  const Shape& whole = program.shape(program.op_operands(op)[0]);
  const Shape& update = program.shape(program.op_operands(op)[1]);
  const auto dims = static_cast<std::size_t>(whole.size());
  RuleMaker rule;
  rule.add_tensor(whole);
  rule.add_tensor(update);
  for (std::size_t i = 0; i < dims; ++i) rule.add_tensor({});
  rule.add_tensor(whole);
  for (int dim = 0; dim < whole.size(); ++dim) {
    const bool filled = whole[dim] == update[dim];
    const FactorType type = filled ? FactorType::pass_through : FactorType::need_replication;
    const int factor = rule.add_factor(whole[dim], type);
    rule.put(0, dim, factor);
    rule.put(1, dim, filled ? factor : rule.add_factor(update[dim], type));
    rule.put(2 + dims, dim, factor);
  }
  return rule.take();
}

// The following functions append the gradients of ops.

ValueId gather_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  WEFT_CHECK(index == 0, index);
  return builder.scatter(op.operands[1], g, builder.type(op.operands[0]).shape[0]);
}

ValueId scatter_cotangent(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.gather(g, op.operands[0]);
}

ValueId dynamic_slice_cotangent(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  const ValueId zeros = builder.constant(0, builder.type(op.operands[0]));
  return builder.dynamic_update_slice(zeros, g, std::span(op.operands).subspan(1));
}

ValueId dynamic_update_slice_cotangent(Builder& builder, const ForwardOp& op, std::size_t index,
                                       ValueId g) {
  const auto starts = std::span(op.operands).subspan(2);
  if (index == 1) {
    const Shape sizes = builder.type(op.operands[1]).shape;
    return builder.dynamic_slice(g, starts, sizes);
  }
  // The update replaces these elements of x, so x has a cotangent of 0 there.
  const ValueId zeros = builder.constant(0, builder.type(op.operands[1]));
  return builder.dynamic_update_slice(g, zeros, starts);
}

// The following functions compute the values of ops, for the reference interpreters.

/// Returns the number of elements in a row; `rows` is the shape of all rows.
std::ptrdiff_t row_size(const Shape& rows) {
  std::ptrdiff_t size = 1;
  for (int dim = 1; dim < rows.size(); ++dim) size *= rows[dim];
  return size;
}

/// Returns the index relative to the chip's first row; std::nullopt if the chip doesn't have the
/// row.
std::optional<std::ptrdiff_t> row_of(double index, const Shape& rows, const PartPlace& place) {
  const auto row = static_cast<std::int64_t>(index) - place.first;
  if (row < 0 || row >= rows[0]) return {};
  return static_cast<std::ptrdiff_t>(row);
}

Elements gathered_elements(const Evaluation& e) {
  const Shape& rows = e.operand_shape(0);
  const std::ptrdiff_t size = row_size(rows);
  Elements result;
  for (const double index : e.operand(1)) {
    if (const auto row = row_of(index, rows, e.place[0])) {
      const auto first = e.operand(0).begin() + *row * size;
      result.insert(result.end(), first, first + size);
    } else {
      result.insert(result.end(), static_cast<std::size_t>(size), 0.0);
    }
  }
  return result;
}

Elements scattered_elements(const Evaluation& e) {
  const std::ptrdiff_t size = row_size(e.shape());
  Elements result(static_cast<std::size_t>(e.shape().num_elements()), 0.0);
  auto update = e.operand(1).begin();
  for (const double index : e.operand(0)) {
    if (const auto row = row_of(index, e.shape(), e.place[0])) {
      const auto first = result.begin() + *row * size;
      std::transform(first, first + size, update, first, std::plus<>());
    }
    update += size;
  }
  return result;
}

Elements checked_elements(const Evaluation& e) {
  const IndexCheck check(e.program, e.op, picked_from(e.program, e.program.op_operands(e.op)[0]));
  for (const double index : e.operand(0)) {
    const auto value = static_cast<std::int64_t>(index);
    if (!check.allows(value)) check.refuse(value);
  }
  return e.operand(0);
}

/// Returns the offsets of the elements of a part of operand 0. The operands from `first` on are the
/// part's start in each dim; they are clamped so that the part is within operand 0.
std::vector<std::int64_t> places_from(const Evaluation& e, const Shape& part, std::size_t first) {
  const Shape& whole = e.operand_shape(0);
  std::vector<std::int64_t> start;
  for (int dim = 0; dim < whole.size(); ++dim) {
    const double asked = e.operand(first + static_cast<std::size_t>(dim)).front();
    start.push_back(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(asked), 0, whole[dim] - part[dim]));
  }
  return box(whole, part, start);
}

Elements dynamic_slice_elements(const Evaluation& e) {
  return take(e.operand(0), places_from(e, e.shape(), 1));
}

Elements dynamic_update_slice_elements(const Evaluation& e) {
  Elements result = e.operand(0);
  put(result, places_from(e, e.operand_shape(1), 2), e.operand(1));
  return result;
}

std::int64_t scatter_flops(const Program& program, OpId op, const Mesh&) {
  return program.type(program.op_operands(op)[1]).num_elements();
}

// In a chip's program, `atoms` shard dim 0 of the table (gather) or the result (scatter). The
// chip's first row is row index_in(atoms) * rows of the whole tensor.
constexpr Attr kGather[] = {atoms().atoms_of(0, 0)};
constexpr Attr kScatter[] = {integer("rows").size_of(AttrDim::kResult, 0),
                             atoms().atoms_of(AttrDim::kResult, 0)};
constexpr Attr kSizes[] = {list("sizes").size_of(AttrDim::kResult, AttrDim::kEachDim)};
constexpr Attr kCheck[] = {list("limit_ignored", 0, 2), list("new_tokens", 0, 1).if_set()};

}  // namespace

/// A chip that has only a part of the table's rows returns zeros for indices of other rows. The sum
/// over the chips is then the result for the whole table.
constexpr OpRow rows::gather{
    .doc = "(table, index i32): table[index] along dim 0. An index outside the table gives zeros.",
    .operands = operands(2),
    .attrs = Attrs(kGather),
    .infer = gathered,
    .rule = Rule("r w*, i* -> i* w* reduction={r} order={i* r w*}"),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = gather_cotangent,
    .evaluate = gathered_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.picks = Picks::some, .reads_part_of = 0},
};

/// Unlike StableHLO's scatter, this adds the updates to zeros, not to an operand. Otherwise, if
/// each chip had a part of the index, the sum over the chips would include that operand once per
/// chip.
constexpr OpRow rows::scatter{
    .doc =
        "(index i32, updates): rows of zeros, to which the updates are added in index order. "
        "Updates of rows outside are dropped.",
    .operands = operands(2),
    .attrs = Attrs(kScatter),
    .infer = scattered,
    .rule = Rule("i*, i* w* -> r w* reduction={i*} free={r} order={i* r w*}"),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = scatter_cotangent,
    .evaluate = scattered_elements,
    .decompose = none,
    .cost = scatter_flops,
    .traits = Traits{},
};

constexpr OpRow rows::dynamic_slice{
    .doc =
        "(x, start of each dim): x[start : start + size]. The starts are i32 scalars, clamped so "
        "that the slice is within x.",
    .operands = operands(1, 1 + kDimCountMax),
    .attrs = Attrs(kSizes),
    .infer = dynamic_part,
    .rule = dynamic_slice_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = Linearity{.in = Linearity::In::first},
    .gradient = dynamic_slice_cotangent,
    .evaluate = dynamic_slice_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.picks = Picks::some, .reads_part_of = 0},
};

constexpr OpRow rows::dynamic_update_slice{
    .doc =
        "(x, update, start of each dim): x with the update at the position that dynamic_slice "
        "would read.",
    .operands = operands(2, 2 + kDimCountMax),
    .attrs = none,
    .infer = updated,
    .rule = dynamic_update_slice_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = dynamic_update_slice_cotangent,
    .evaluate = dynamic_update_slice_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{},
};

constexpr OpRow rows::check_index{
    .doc =
        "The index i32. The run fails if an index is neither in 0..limit-1 nor equal to `ignored`. "
        "With new_tokens, the index is the length of a KeyValueCache, to which this many tokens "
        "are added.",
    .operands = operands(1),
    .attrs = Attrs(kCheck),
    .infer = checked,
    .rule = Rule("d* -> d*"),
    .spreads = Spreads::first,
    .resized = none,
    .pads = Pads::with_zeros,
    .linear = none,
    .gradient = none,
    .evaluate = checked_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{},
};

}  // namespace weft
