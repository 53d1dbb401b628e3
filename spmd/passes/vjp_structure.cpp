#include <algorithm>
#include <array>
#include <numeric>

#include <weft/spmd/passes/vjp.hpp>
#include <weft/spmd/program/infer.hpp>

namespace weft {
namespace {

DimList consecutive(std::size_t first, std::size_t count) {
  DimList dims(count);
  std::iota(dims.begin(), dims.end(), static_cast<std::int64_t>(first));
  return dims;
}

DimList dim_list(std::span<const std::int64_t> dims) {
  DimList list;
  list.append_range(dims);
  return list;
}

/// The permutation that undoes `perm`.
DimList inverse(std::span<const std::int64_t> perm) {
  DimList result(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    result[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

ValueId broadcast_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
  const Shape from = builder.type(op.operands[0]).shape;
  const Shape to = builder.type(g).shape;
  DimList summed = free_dims(to.size(), op.attrs, {});
  for (int i = 0; i < from.size(); ++i) {
    const std::int64_t dim = op.attrs[static_cast<std::size_t>(i)];
    if (from[i] != to[static_cast<int>(dim)]) summed.push_back(dim);
  }
  const ValueId sum = summed.empty() ? g : builder.reduce(ReduceKind::add, g, summed);
  return builder.type(sum).shape == from ? sum : builder.reshape(sum, from);
}

/// Zeros before, behind and between, so that what was taken stands where it came from.
ValueId slice_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
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

/// Of the padded operand: what of `g` stands where its elements do.
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

/// Of the padding: what of `g` stands where no element does.
ValueId padding_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
  const auto sum = [&](ValueId value) {
    const DimList all = consecutive(0, static_cast<std::size_t>(builder.type(value).shape.size()));
    return builder.reduce(ReduceKind::add, value, all);
  };
  return builder.binary(OpKind::subtract, sum(g), sum(unpadded(builder, op, g)));
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

/// One side of a dot_general: its dims by role, pairs of batch and contracting dims in the op's
/// order.
struct DotSide {
  ValueId value;
  DimList batch;
  DimList contracting;
  DimList free;
};

std::array<DotSide, 2> dot_sides(Builder& builder, const ForwardOp& op) {
  const auto side = [&](ValueId value, std::span<const std::int64_t> batch,
                        std::span<const std::int64_t> contracting) {
    return DotSide{.value = value,
                   .batch = dim_list(batch),
                   .contracting = dim_list(contracting),
                   .free = free_dims(builder.type(value).shape.size(), batch, contracting)};
  };
  const DotDimsView dims = dot_dims(op.attrs);
  return {side(op.operands[0], dims.lhs_batch, dims.lhs_contracting),
          side(op.operands[1], dims.rhs_batch, dims.rhs_contracting)};
}

}  // namespace

ValueId shape_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const Shape shape = builder.type(op.operands[0]).shape;
  switch (op.kind) {
    case OpKind::reshape: return builder.reshape(g, shape);
    case OpKind::transpose: return builder.transpose(g, inverse(op.attrs));
    case OpKind::slice: return slice_cotangent(builder, op, g);
    case OpKind::pad:
      return index == 0 ? unpadded(builder, op, g) : padding_cotangent(builder, op, g);
    case OpKind::concatenate: return part_cotangent(builder, op, index, g);
    case OpKind::reverse: return builder.reverse(g, op.attrs);
    default: return broadcast_cotangent(builder, op, g);
  }
}

ValueId index_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const TensorType type = builder.type(op.operands[index]);
  const std::span<const ValueId> operands = op.operands;
  switch (op.kind) {
    case OpKind::gather: return builder.scatter(operands[1], g, type.shape[0]);
    case OpKind::scatter: return builder.gather(g, operands[0]);
    case OpKind::dynamic_slice:
      return builder.dynamic_update_slice(builder.constant(0, type), g, operands.subspan(1));
    default: break;
  }
  WEFT_CHECK(op.kind == OpKind::dynamic_update_slice, to_string(op.kind));
  const auto starts = operands.subspan(2);
  if (index == 1) return builder.dynamic_slice(g, starts, type.shape);
  // Nothing of x is left where the update stands.
  const ValueId zeros = builder.constant(0, builder.type(operands[1]));
  return builder.dynamic_update_slice(g, zeros, starts);
}

ValueId reduce_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
  const ValueId x = op.operands[0];
  const TensorType type = builder.type(x);
  const std::span<const std::int64_t> dims = std::span(op.attrs).subspan(1);
  const DimList kept = free_dims(type.shape.size(), dims, {});
  if (static_cast<ReduceKind>(op.attrs[0]) == ReduceKind::add) {
    return builder.broadcast_in_dim(g, type.shape, kept);
  }
  // max, min: the elements that attain it share the cotangent.
  const ValueId extremum = builder.broadcast_in_dim(op.result, type.shape, kept);
  const ValueId attains = builder.compare(CompareDirection::eq, x, extremum);
  const ValueId count = builder.reduce(ReduceKind::add, builder.convert(attains, type.dtype), dims);
  const ValueId share = builder.binary(OpKind::divide, g, count);
  return builder.select(attains, builder.broadcast_in_dim(share, type.shape, kept),
                        builder.constant(0, type));
}

ValueId dot_general_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const auto sides = dot_sides(builder, op);
  const DotSide& mine = sides[index];
  const DotSide& other = sides[1 - index];
  const std::size_t batches = mine.batch.size();

  // g's dims are: batch, free of lhs, free of rhs. Contract it with the other side over what only
  // that side had.
  const std::size_t lhs_free = sides[0].free.size();
  const DimList g_batch = consecutive(0, batches);
  const DimList g_other = consecutive(index == 0 ? batches + lhs_free : batches, other.free.size());

  // The product's dims, as dims of `mine`: batch, then `mine.free` (from g) and the contracting
  // dims (from the other side, in its order), the side that stands left first.
  DimList by_other_dim = consecutive(0, mine.contracting.size());
  std::sort(by_other_dim.begin(), by_other_dim.end(), [&](std::int64_t a, std::int64_t b) {
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

  // Either order is right; one of them often needs no transpose.
  const DimList other_first = product_dims(from_other, mine.free);
  if (std::is_sorted(other_first.begin(), other_first.end())) {
    return builder.dot_general(other.value, g,
                               {.lhs_batch = other.batch,
                                .rhs_batch = g_batch,
                                .lhs_contracting = other.free,
                                .rhs_contracting = g_other});
  }
  const ValueId product = builder.dot_general(g, other.value,
                                              {.lhs_batch = g_batch,
                                               .rhs_batch = other.batch,
                                               .lhs_contracting = g_other,
                                               .rhs_contracting = other.free});
  const DimList g_first = product_dims(mine.free, from_other);
  if (std::is_sorted(g_first.begin(), g_first.end())) return product;
  return builder.transpose(product, inverse(g_first));
}

}  // namespace weft
