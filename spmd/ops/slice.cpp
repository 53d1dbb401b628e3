/// Defines ops that return a part of a tensor, or a tensor made of parts.

#include <algorithm>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using namespace infer;

// The following functions infer the type of an op's result.

/// Returns the three lists of the attributes. Each must have a number for each dim of operand 0.
std::array<Words, 3> expect_triples(const OpSignature& op) {
  const auto dims = static_cast<std::size_t>(op.operands[0].shape.size());
  if (op.attrs.size() != 3 * dims) {
    reject(op, "has {} attribute words; it takes 3 for each of the {} dims", op.attrs.size(), dims);
  }
  return triples(op.attrs);
}

TensorType sliced(const OpSignature& op) {
  const auto [start, limit, stride] = expect_triples(op);
  Shape shape = op.operands[0].shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (start[d] < 0 || start[d] > limit[d] || limit[d] > shape[dim] || stride[d] < 1) {
      reject(op, "[{}:{}:{}] of dim {} isn't within its size {}", start[d], limit[d], stride[d],
             dim, shape[dim]);
    }
    shape[dim] = start[d] == limit[d] ? 0 : (limit[d] - start[d] - 1) / stride[d] + 1;
  }
  return {op.operands[0].dtype, shape};
}

TensorType padded(const OpSignature& op) {
  const auto [low, high, interior] = expect_triples(op);
  const TensorType& x = op.operands[0];
  if (op.operands[1] != TensorType{x.dtype, {}}) {
    reject(op, "the padding must be a scalar of {}", to_string(x.dtype));
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  Shape shape = x.shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t gaps = std::max<std::int64_t>(shape[dim] - 1, 0);
    for (const std::int64_t count : {low[d], high[d], interior[d]}) {
      if (count < 0 || count > kMost / (gaps + 1)) {
        reject(op, "padding {}, {}, {} of dim {}: expected counts from 0 to {}", low[d], high[d],
               interior[d], dim, kMost / (gaps + 1));
      }
    }
    shape[dim] += low[d] + high[d] + gaps * interior[d];
  }
  return {x.dtype, shape};
}

TensorType joined(const OpSignature& op) {
  Shape shape = op.operands[0].shape;
  const int dim = expect_dim(op, op.attrs[0], shape);
  shape[dim] = 0;
  for (const TensorType& part : op.operands) {
    Shape others = part.shape;
    if (others.size() == shape.size()) others[dim] = shape[dim];
    if (part.dtype != op.operands[0].dtype || others != shape) {
      reject(op, "{} and {} differ in more than dim {}", op.operands[0].to_string(),
             part.to_string(), dim);
    }
    shape[dim] += part.shape[dim];
  }
  return {op.operands[0].dtype, shape};
}

// The following functions return the factor rules of ops.

/// Returns a rule in which dim i can be sharded if is_whole(i), because operand and result then
/// have the dim in common. Other dims can't be sharded. `others` is the number of scalar operands.
template <typename IsWhole>
FactorRule window_rule(const Shape& from, std::size_t others, const Shape& to, IsWhole is_whole) {
  RuleMaker rule;
  rule.add_tensor(from);
  for (std::size_t i = 0; i < others; ++i) rule.add_tensor({});
  rule.add_tensor(to);
  for (int dim = 0; dim < from.size(); ++dim) {
    if (is_whole(static_cast<std::size_t>(dim))) {
      const int factor = rule.add_factor(from[dim]);
      rule.put(0, dim, factor);
      rule.put(1 + others, dim, factor);
    } else {
      rule.put(0, dim, rule.add_factor(from[dim], FactorType::need_replication));
      rule.put(1 + others, dim, rule.add_factor(to[dim], FactorType::need_replication));
    }
  }
  return rule.take();
}

FactorRule slice_rule(const Program& program, OpId op) {
  const Shape& from = program.shape(program.op_operands(op)[0]);
  return window_rule(from, 0, program.shape(program.result(op)), [&](std::size_t dim) {
    return is_whole_dim(program.op_attrs(op), dim, from);
  });
}

FactorRule pad_rule(const Program& program, OpId op) {
  const auto [low, high, interior] = triples(program.op_attrs(op));
  return window_rule(program.shape(program.op_operands(op)[0]), 1,
                     program.shape(program.result(op)),
                     [low = low, high = high, interior = interior](std::size_t dim) {
                       return low[dim] == 0 && high[dim] == 0 && interior[dim] == 0;
                     });
}

FactorRule concatenate_rule(const Program& program, OpId op) {
  const auto joined = static_cast<int>(program.op_attrs(op)[0]);
  const Shape& to = program.shape(program.result(op));
  const auto operands = program.op_operands(op);
  RuleMaker rule;
  for (const ValueId operand : operands) rule.add_tensor(program.shape(operand));
  rule.add_tensor(to);
  for (int dim = 0; dim < to.size(); ++dim) {
    if (dim == joined) continue;  // no factor, because each part would need its own
    const int factor = rule.add_factor(to[dim]);
    for (std::size_t tensor = 0; tensor <= operands.size(); ++tensor) {
      rule.put(tensor, dim, factor);
    }
  }
  return rule.take();
}

// The following functions append the gradients of ops.

/// Puts g where the slice was taken, with zeros before, after and between its elements.
ValueId placed_back(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  const TensorType from = builder.type(op.operands[0]);
  const Shape to = builder.type(g).shape;
  const ValueId zero = builder.constant(0, {from.dtype, {}});
  const auto [start, limit, stride] = triples(op.attrs);
  DimList high;
  DimList interior;
  for (int dim = 0; dim < to.size(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (to[dim] == 0) return builder.broadcast_in_dim(zero, from.shape, {});
    high.push_back(from.shape[dim] - start[d] - (to[dim] - 1) * stride[d] - 1);
    interior.push_back(stride[d] - 1);
  }
  return builder.pad(g, zero, start, high, interior);
}

/// Returns the cotangent of the padded operand: the elements of g at the operand's positions.
ValueId unpadded(Builder& builder, const ForwardOp& op, ValueId g) {
  const TensorType from = builder.type(op.operands[0]);
  const auto [low, high, interior] = triples(op.attrs);
  DimList start;
  DimList limit;
  DimList stride;
  for (int dim = 0; dim < from.shape.size(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t size = from.shape[dim];
    start.push_back(low[d]);
    limit.push_back(low[d] + (size == 0 ? 0 : (size - 1) * (interior[d] + 1) + 1));
    stride.push_back(interior[d] + 1);
  }
  return builder.slice(g, start, limit, stride);
}

/// Returns the cotangent of the padding value: the sum of the elements of g at the positions of
/// padding.
ValueId padding_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
  const auto sum = [&](ValueId value) {
    const DimList all = consecutive_dims(0, builder.type(value).shape.size());
    return builder.reduce(ReduceKind::add, value, all);
  };
  return builder.binary(OpKind::subtract, sum(g), sum(unpadded(builder, op, g)));
}

ValueId padded_back(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  return index == 0 ? unpadded(builder, op, g) : padding_cotangent(builder, op, g);
}

ValueId part_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const Shape whole = builder.type(g).shape;
  const auto joined = static_cast<int>(op.attrs[0]);
  const auto size_of = [&](std::size_t part) {
    return builder.type(op.operands[part]).shape[joined];
  };
  DimList start(static_cast<std::size_t>(whole.size()));
  DimList limit;
  limit.append_range(whole);
  DimList stride;
  for (int dim = 0; dim < whole.size(); ++dim) stride.push_back(1);
  std::int64_t& begin = start[static_cast<std::size_t>(joined)];
  for (std::size_t part = 0; part < index; ++part) begin += size_of(part);
  limit[static_cast<std::size_t>(joined)] = begin + size_of(index);
  return builder.slice(g, start, limit, stride);
}

// The following functions compute the values of ops, for the reference interpreters.

Elements sliced_elements(const Evaluation& e) {
  const auto [start, limit, stride] = triples(e.attrs());
  return take(e.operand(0), places(e.operand_shape(0), e.shape(), start, stride));
}

Elements padded_elements(const Evaluation& e) {
  const auto [low, high, interior] = triples(e.attrs());
  std::vector<std::int64_t> stride(interior.begin(), interior.end());
  for (std::int64_t& step : stride) ++step;
  Elements result(static_cast<std::size_t>(e.shape().num_elements()), e.operand(1).front());
  put(result, places(e.shape(), e.operand_shape(0), low, stride), e.operand(0));
  return result;
}

Elements joined_elements(const Evaluation& e) {
  std::vector<std::int64_t> start(static_cast<std::size_t>(e.shape().size()), 0);
  Elements result(static_cast<std::size_t>(e.shape().num_elements()));
  for (std::size_t part = 0; part < e.operands.size(); ++part) {
    put(result, box(e.shape(), e.operand_shape(part), start), e.operand(part));
    start[static_cast<std::size_t>(e.attrs()[0])] +=
        e.operand_shape(part)[static_cast<int>(e.attrs()[0])];
  }
  return result;
}

/// Adapts a slice's attribute words to a chip's part: in a dim that is taken completely, the slice
/// ends at the end of the part.
void limit_to_part(std::span<std::int64_t> words, const Shape& whole, const Shape& part) {
  const auto dims = static_cast<std::size_t>(whole.size());
  for (std::size_t dim = 0; dim < dims; ++dim) {
    if (is_whole_dim(words, dim, whole)) words[dims + dim] = part[static_cast<int>(dim)];
  }
}

constexpr Attr kSlice[] = {list("start"), list("limit"), list("stride")};
constexpr Attr kPad[] = {list("low"), list("high"), list("interior")};
constexpr Attr kJoin[] = {integer("dim")};

}  // namespace

constexpr OpRow rows::slice{
    .doc = "x[start : limit : stride] in each dim.",
    .operands = operands(1),
    .attrs = Attrs(kSlice),
    .infer = sliced,
    .rule = slice_rule,
    .spreads = Spreads::later,
    .resized = limit_to_part,
    .pads = Pads::yes,
    .linear = Linearity{.in = Linearity::In::first},
    .gradient = placed_back,
    .evaluate = sliced_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.picks = Picks::some, .reads_part_of = 0, .reorder = Reorder::lists},
};

constexpr OpRow rows::pad{
    .doc =
        "(x, scalar): x with copies of the scalar. In each dim, low copies are before x, high "
        "after x, and interior between neighboring elements.",
    .operands = operands(2),
    .attrs = Attrs(kPad),
    .infer = padded,
    .rule = pad_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = padded_back,
    .evaluate = padded_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.reorder = Reorder::lists},
};

constexpr OpRow rows::concatenate{
    .doc = "The operands joined along dim.",
    .operands = operands(1, kConcatenateCountMax),
    .attrs = Attrs(kJoin),
    .infer = joined,
    .rule = concatenate_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = part_cotangent,
    .evaluate = joined_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.reorder = Reorder::joined_dim},
};

}  // namespace weft
