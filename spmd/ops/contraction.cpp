/// Defines dot_general, which sums products, and reduce.

#include <algorithm>
#include <array>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using namespace infer;

// The following functions infer the type of an op's result.

void expect_pairs(const OpSignature& op, std::string_view what, Words lhs_dims, Words rhs_dims) {
  for (std::size_t i = 0; i < lhs_dims.size(); ++i) {
    const std::int64_t lhs = op.operands[0].shape[static_cast<int>(lhs_dims[i])];
    const std::int64_t rhs = op.operands[1].shape[static_cast<int>(rhs_dims[i])];
    if (lhs != rhs) {
      reject(op, "{} dims {} (size {}) and {} (size {}) must have one size", what, lhs_dims[i], lhs,
             rhs_dims[i], rhs);
    }
  }
}

TensorType product_type(const OpSignature& op) {
  const TensorType& lhs = op.operands[0];
  const TensorType& rhs = op.operands[1];
  if (lhs.dtype != rhs.dtype || lhs.dtype == DType::pred) {
    reject(op, "both operands must have one dtype, not pred; convert first");
  }
  const DotDimsView dims = dot_dims(op.attrs);
  if (dims.skip_zeros < SkipZeros::never || dims.skip_zeros > SkipZeros::cotangent) {
    reject(op, "skip_zeros is [{}]; expected [0], [1] or [2]", static_cast<int>(dims.skip_zeros));
  }
  const auto distinct = [&](const Shape& shape, Words batch, Words contracting) {
    InplaceVector<std::int64_t, 2 * kDimCountMax> all;
    all.append_range(batch);
    all.append_range(contracting);
    expect_distinct(op, all, shape);
  };
  distinct(lhs.shape, dims.lhs_batch, dims.lhs_contracting);
  distinct(rhs.shape, dims.rhs_batch, dims.rhs_contracting);
  expect_pairs(op, "batch", dims.lhs_batch, dims.rhs_batch);
  expect_pairs(op, "contracting", dims.lhs_contracting, dims.rhs_contracting);

  InplaceVector<std::int64_t, 3 * kDimCountMax> shape;
  const auto append = [&](const Shape& from, Words which) {
    for (const std::int64_t dim : which) shape.push_back(from[static_cast<int>(dim)]);
  };
  append(lhs.shape, dims.lhs_batch);
  append(lhs.shape, free_dims(lhs.shape.size(), dims.lhs_batch, dims.lhs_contracting));
  append(rhs.shape, free_dims(rhs.shape.size(), dims.rhs_batch, dims.rhs_contracting));
  if (shape.size() > kDimCountMax) {
    reject(op, "the result would have {} dims; at most {} are supported", shape.size(),
           kDimCountMax);
  }
  return {lhs.dtype, Shape(Words(shape))};
}

/// Returns the result's type. A sum of bf16 or f16 may have the type f32 if it is a partial sum
/// that still has to be added to those of other chips.
TensorType reduced_type(const OpSignature& op) {
  expect_reducible(op, 0);
  const TensorType& x = op.operands[0];
  const bool adds = static_cast<ReduceKind>(op.attrs[0]) == ReduceKind::add;
  const bool is_wide = adds && is_half(x.dtype) && op.result.dtype == DType::f32;
  const Words dims = op.attrs.subspan(1);
  expect_ascending(op, dims, x.shape);
  DimList shape;
  for (int dim = 0; dim < x.shape.size(); ++dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) shape.push_back(x.shape[dim]);
  }
  return {is_wide ? DType::f32 : x.dtype, Shape(Words(shape))};
}

// The following functions return the factor rules of ops.

FactorRule dot_general_rule(const Program& program, OpId op) {
  const Shape& lhs = program.shape(program.op_operands(op)[0]);
  const Shape& rhs = program.shape(program.op_operands(op)[1]);
  const Shape& result = program.shape(program.result(op));
  const DotDimsView dims = dot_dims(program.op_attrs(op));
  RuleMaker rule;
  for (const Shape* shape : {&lhs, &rhs, &result}) rule.add_tensor(*shape);
  const auto size_of = [](const Shape& shape, std::int64_t dim) {
    return shape[static_cast<int>(dim)];
  };
  std::int64_t result_dim = 0;
  for (std::size_t i = 0; i < dims.lhs_batch.size(); ++i) {
    const int factor = rule.add_factor(size_of(lhs, dims.lhs_batch[i]));
    rule.put(0, dims.lhs_batch[i], factor);
    rule.put(1, dims.rhs_batch[i], factor);
    rule.put(2, result_dim++, factor);
  }
  for (const std::int64_t dim : free_dims(lhs.size(), dims.lhs_batch, dims.lhs_contracting)) {
    const int factor = rule.add_factor(size_of(lhs, dim));
    rule.put(0, dim, factor);
    rule.put(2, result_dim++, factor);
  }
  for (const std::int64_t dim : free_dims(rhs.size(), dims.rhs_batch, dims.rhs_contracting)) {
    const int factor = rule.add_factor(size_of(rhs, dim));
    rule.put(1, dim, factor);
    rule.put(2, result_dim++, factor);
  }
  for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const int factor = rule.add_factor(size_of(lhs, dims.lhs_contracting[i]), FactorType::reduction,
                                       ReduceKind::add);
    rule.put(0, dims.lhs_contracting[i], factor);
    rule.put(1, dims.rhs_contracting[i], factor);
  }
  return rule.take();
}

FactorRule reduce_rule(const Program& program, OpId op) {
  const Shape& from = program.shape(program.op_operands(op)[0]);
  const auto kind = static_cast<ReduceKind>(program.op_attrs(op)[0]);
  const Words reduced = program.op_attrs(op).subspan(1);
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(program.shape(program.result(op)));
  std::int64_t result_dim = 0;
  for (int dim = 0; dim < from.size(); ++dim) {
    if (std::ranges::count(reduced, dim) > 0) {
      rule.put(0, dim, rule.add_factor(from[dim], FactorType::reduction, kind));
    } else {
      const int factor = rule.add_factor(from[dim]);
      rule.put(0, dim, factor);
      rule.put(1, result_dim++, factor);
    }
  }
  return rule.take();
}

// The following functions append the gradients of ops.

/// One operand of a dot_general, with its dims by role. Entry i of `batch`, or of `contracting`, is
/// paired with entry i of the other operand's list.
struct DotSide {
  ValueId value;
  DimList batch;
  DimList contracting;
  DimList free;
};

DimList list_of(Words dims) {
  DimList list;
  list.append_range(dims);
  return list;
}
std::int64_t ssize(const DimList& dims) { return static_cast<std::int64_t>(dims.size()); }

std::array<DotSide, 2> dot_sides(Builder& builder, const ForwardOp& op) {
  const auto side = [&](ValueId value, std::span<const std::int64_t> batch,
                        std::span<const std::int64_t> contracting) {
    return DotSide{.value = value,
                   .batch = list_of(batch),
                   .contracting = list_of(contracting),
                   .free = free_dims(builder.type(value).shape.size(), batch, contracting)};
  };
  const DotDimsView dims = dot_dims(op.attrs);
  return {side(op.operands[0], dims.lhs_batch, dims.lhs_contracting),
          side(op.operands[1], dims.rhs_batch, dims.rhs_contracting)};
}

/// Returns which operand's zeros a product in a gradient must skip. `lhs` and `rhs` say which two
/// of the op's lhs, rhs and cotangent are the product's operands; its result is the gradient of the
/// third.
SkipZeros skipped_in(SkipZeros of_op, SkipZeros lhs, SkipZeros rhs) {
  if (of_op == SkipZeros::never) return SkipZeros::never;
  if (of_op == lhs) return SkipZeros::lhs;
  return of_op == rhs ? SkipZeros::rhs : SkipZeros::cotangent;
}

ValueId product_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const auto sides = dot_sides(builder, op);
  const DotSide& mine = sides[index];
  const DotSide& other = sides[1 - index];
  const std::int64_t batches = ssize(mine.batch);

  const SkipZeros skip_zeros = dot_dims(op.attrs).skip_zeros;
  const auto of_other = static_cast<SkipZeros>(1 - index);

  // The dims of g are: batch, free dims of lhs, free dims of rhs. Contracts the free dims of the
  // other side.
  const std::int64_t lhs_free = ssize(sides[0].free);
  const DimList g_batch = consecutive_dims(0, batches);
  const DimList g_other =
      consecutive_dims(index == 0 ? batches + lhs_free : batches, ssize(other.free));

  // Finds where the product's dims are in `mine`. They are the batch dims, then the dims of the
  // left factor, then those of the right. g contributes the dims `mine.free`; the other side
  // contributes the contracting dims, but in its own order.
  DimList by_other_dim = consecutive_dims(0, ssize(mine.contracting));
  std::stable_sort(by_other_dim.begin(), by_other_dim.end(), [&](std::int64_t a, std::int64_t b) {
    return other.contracting[static_cast<std::size_t>(a)] <
           other.contracting[static_cast<std::size_t>(b)];
  });
  DimList from_other;
  for (const std::int64_t i : by_other_dim) {
    from_other.push_back(mine.contracting[static_cast<std::size_t>(i)]);
  }
  const auto product_dims = [&](const DimList& left, const DimList& right) {
    DimList dims = mine.batch;
    dims.append_range(left);
    dims.append_range(right);
    return dims;
  };

  // Both orders of the factors are correct, but one often avoids a transpose.
  const DimList other_first = product_dims(from_other, mine.free);
  if (std::is_sorted(other_first.begin(), other_first.end())) {
    return builder.dot_general(
        other.value, g,
        {.lhs_batch = other.batch,
         .rhs_batch = g_batch,
         .lhs_contracting = other.free,
         .rhs_contracting = g_other,
         .skip_zeros = skipped_in(skip_zeros, of_other, SkipZeros::cotangent)});
  }
  const ValueId product =
      builder.dot_general(g, other.value,
                          {.lhs_batch = g_batch,
                           .rhs_batch = other.batch,
                           .lhs_contracting = g_other,
                           .rhs_contracting = other.free,
                           .skip_zeros = skipped_in(skip_zeros, SkipZeros::cotangent, of_other)});
  const DimList g_first = product_dims(mine.free, from_other);
  if (std::is_sorted(g_first.begin(), g_first.end())) return product;
  return builder.transpose(product, inverse_permutation(g_first));
}

ValueId dot_general_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const ValueId slope = product_cotangent(builder, op, index, g);
  if (dot_dims(op.attrs).skip_zeros != static_cast<SkipZeros>(index)) return slope;
  const ValueId zero = builder.constant(0, builder.type(slope));
  const ValueId is_zero = builder.compare(CompareDirection::eq, op.operands[index], zero);
  return builder.select(is_zero, zero, slope);
}

ValueId reduce_cotangent(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  const ValueId x = op.operands[0];
  const TensorType type = builder.type(x);
  const std::span<const std::int64_t> dims = std::span(op.attrs).subspan(1);
  const DimList kept = free_dims(type.shape.size(), dims, {});
  if (static_cast<ReduceKind>(op.attrs[0]) == ReduceKind::add) {
    return builder.broadcast_in_dim(g, type.shape, kept);
  }
  // For max and min, all elements that equal the extremum, or are NaN, get equal shares of the
  // cotangent.
  const ValueId extremum = builder.broadcast_in_dim(op.result, type.shape, kept);
  ValueId attains = builder.compare(CompareDirection::eq, x, extremum);
  if (is_floating(type.dtype)) {
    attains =
        builder.binary(OpKind::logical_or, attains, builder.compare(CompareDirection::ne, x, x));
  }
  const ValueId count = builder.reduce(ReduceKind::add, builder.convert(attains, type.dtype), dims);
  const ValueId share = builder.binary(OpKind::divide, g, count);
  return builder.select(attains, builder.broadcast_in_dim(share, type.shape, kept),
                        builder.constant(0, type));
}

// The following functions compute the values of ops, for the reference interpreters.

/// Returns `values[which[0]], values[which[1]], ...`.
std::vector<std::int64_t> pick(Words values, Words which) {
  std::vector<std::int64_t> picked;
  for (const std::int64_t i : which) picked.push_back(values[static_cast<std::size_t>(i)]);
  return picked;
}

Elements product_elements(const Evaluation& e) {
  const Elements& lhs = e.operand(0);
  const Elements& rhs = e.operand(1);
  const Shape& lhs_shape = e.operand_shape(0);
  const Shape& rhs_shape = e.operand_shape(1);
  const DotDimsView dims = dot_dims(e.attrs());
  const auto side = [](const Shape& shape, Words which) {
    return offsets(pick(shape, which), pick(row_major_strides(shape), which));
  };
  const auto lhs_batch = side(lhs_shape, dims.lhs_batch);
  const auto rhs_batch = side(rhs_shape, dims.rhs_batch);
  const auto lhs_contracting = side(lhs_shape, dims.lhs_contracting);
  const auto rhs_contracting = side(rhs_shape, dims.rhs_contracting);
  const auto lhs_free =
      side(lhs_shape, free_dims(lhs_shape.size(), dims.lhs_batch, dims.lhs_contracting));
  const auto rhs_free =
      side(rhs_shape, free_dims(rhs_shape.size(), dims.rhs_batch, dims.rhs_contracting));

  Elements result;
  result.reserve(lhs_batch.size() * lhs_free.size() * rhs_free.size());
  for (std::size_t b = 0; b < lhs_batch.size(); ++b) {
    for (const std::int64_t m : lhs_free) {
      for (const std::int64_t n : rhs_free) {
        double sum = 0;
        for (std::size_t k = 0; k < lhs_contracting.size(); ++k) {
          const double left = lhs[static_cast<std::size_t>(lhs_batch[b] + m + lhs_contracting[k])];
          const double right = rhs[static_cast<std::size_t>(rhs_batch[b] + n + rhs_contracting[k])];
          if (dims.skip_zeros == SkipZeros::lhs && left == 0) continue;
          if (dims.skip_zeros == SkipZeros::rhs && right == 0) continue;
          sum += left * right;
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

Elements reduced_elements(const Evaluation& e) {
  const Elements& x = e.operand(0);
  const TensorType& type = e.operand_type(0);
  const auto kind = static_cast<ReduceKind>(e.attrs()[0]);
  const Words dropped = e.attrs().subspan(1);
  const DimList kept = free_dims(type.shape.size(), {}, dropped);
  const std::vector<std::int64_t> strides = row_major_strides(type.shape);
  const auto inner = offsets(pick(type.shape, dropped), pick(strides, dropped));
  Elements result;
  for (const std::int64_t first : offsets(pick(type.shape, kept), pick(strides, kept))) {
    double total = neutral(kind, type.dtype);
    for (const std::int64_t offset : inner) {
      total = combine(kind, total, x[static_cast<std::size_t>(first + offset)]);
    }
    result.push_back(total);
  }
  return result;
}

bool adds(Words words, DType) { return static_cast<ReduceKind>(words[0]) == ReduceKind::add; }

std::int64_t product_flops(const Program& program, OpId op, const Mesh&) {
  const Shape& lhs = program.shape(program.op_operands(op)[0]);
  std::int64_t summed = 1;
  for (const std::int64_t dim : dot_dims(program.op_attrs(op)).lhs_contracting) {
    summed *= lhs[static_cast<int>(dim)];
  }
  return 2 * summed * program.shape(program.result(op)).num_elements();
}
std::int64_t reduce_flops(const Program& program, OpId op, const Mesh&) {
  return program.type(program.op_operands(op)[0]).num_elements();
}

constexpr Attr kDot[] = {pairs("batch").if_set(), pairs("contracting"),
                         list("skip_zeros", 0, 1).if_set()};
constexpr Attr kReduce[] = {reduce_kind(), list("dims")};

}  // namespace

constexpr OpRow rows::dot_general{
    .doc =
        "Products summed over the contracting dims. The result has the batch dims, then the free "
        "dims of lhs, then those of rhs. skip_zeros names a tensor whose zeros add nothing, even "
        "if they meet a NaN: lhs (0) or rhs (1), which have no gradient at their zeros, or the "
        "result's cotangent (2), only in gradients.",
    .operands = operands(2),
    .attrs = Attrs(kDot),
    .infer = product_type,
    .rule = dot_general_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = dot_general_cotangent,
    .evaluate = product_elements,
    .decompose = none,
    .cost = product_flops,
    .traits = Traits{.product = true},
};

constexpr OpRow rows::reduce{
    .doc =
        "The sum, maximum or minimum over dims, which is ascending. The result doesn't have these "
        "dims.",
    .operands = operands(1),
    .attrs = Attrs(kReduce),
    .infer = reduced_type,
    .rule = reduce_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = Linearity{.in = Linearity::In::first, .holds = adds},
    .gradient = reduce_cotangent,
    .evaluate = reduced_elements,
    .decompose = none,
    .cost = reduce_flops,
    .traits = Traits{.rounds_once = true, .reorder = Reorder::summed_dims},
};

}  // namespace weft
