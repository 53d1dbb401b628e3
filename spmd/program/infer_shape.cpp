#include <weft/spmd/program/infer_shape.hpp>

#include <array>

#include <weft/spmd/program/infer_checks.hpp>

namespace weft::infer {
namespace {

TensorType reshape(const OpSignature& op) {
  expect_counts(op, 1, 0);
  const TensorType& x = op.operands[0];
  if (op.result.dtype != x.dtype || op.result.num_elements() != x.num_elements()) {
    reject(op, "result {} must have the operand's dtype and its {} elements", op.result.to_string(),
           x.num_elements());
  }
  return op.result;
}

TensorType transpose(const OpSignature& op) {
  expect_counts(op, 1, op.attrs.size());
  const TensorType& x = op.operands[0];
  if (static_cast<int>(op.attrs.size()) != x.shape.size()) {
    reject(op, "perm [{}] must name each of the {} dims once", fmt::join(op.attrs, ","),
           x.shape.size());
  }
  expect_distinct(op, op.attrs, x.shape);
  Shape shape = x.shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    shape[dim] = x.shape[static_cast<int>(op.attrs[static_cast<std::size_t>(dim)])];
  }
  return {x.dtype, shape};
}

TensorType broadcast(const OpSignature& op) {
  expect_counts(op, 1, op.attrs.size());
  const TensorType& x = op.operands[0];
  if (op.result.dtype != x.dtype) {
    reject(op, "result {} has another dtype", op.result.to_string());
  }
  if (static_cast<int>(op.attrs.size()) != x.shape.size()) {
    reject(op, "dims [{}] must give a result dim for each of the {} operand dims",
           fmt::join(op.attrs, ","), x.shape.size());
  }
  expect_ascending(op, op.attrs, op.result.shape);
  for (int dim = 0; dim < x.shape.size(); ++dim) {
    const auto to = static_cast<int>(op.attrs[static_cast<std::size_t>(dim)]);
    if (x.shape[dim] != 1 && x.shape[dim] != op.result.shape[to]) {
      reject(op, "operand dim {} of size {} can't become dim {} of {}; sizes must agree or be 1",
             dim, x.shape[dim], to, op.result.to_string());
    }
  }
  return op.result;
}

/// Attributes that come as three numbers for each dim of operand 0, list by list.
std::array<Dims, 3> expect_triples(const OpSignature& op) {
  const auto dims = static_cast<std::size_t>(op.operands[0].shape.size());
  if (op.attrs.size() != 3 * dims) {
    reject(op, "has {} attribute words; it takes 3 for each of the {} dims", op.attrs.size(), dims);
  }
  return triples(op.attrs);
}

TensorType slice(const OpSignature& op) {
  expect_counts(op, 1, op.attrs.size());
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

TensorType pad(const OpSignature& op) {
  expect_counts(op, 2, op.attrs.size());
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

TensorType reverse(const OpSignature& op) {
  expect_counts(op, 1, op.attrs.size());
  expect_ascending(op, op.attrs, op.operands[0].shape);
  return op.operands[0];
}

TensorType concatenate(const OpSignature& op) {
  if (op.operands.empty() || op.operands.size() > kConcatenateCountMax) {
    reject(op, "has {} operands; it takes 1 to {}", op.operands.size(), kConcatenateCountMax);
  }
  expect_counts(op, op.operands.size(), 1);
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

}  // namespace

TensorType shape_op(const OpSignature& op) {
  switch (op.kind) {
    case OpKind::reshape: return reshape(op);
    case OpKind::transpose: return transpose(op);
    case OpKind::broadcast_in_dim: return broadcast(op);
    case OpKind::slice: return slice(op);
    case OpKind::pad: return pad(op);
    case OpKind::reverse: return reverse(op);
    default: return concatenate(op);
  }
}

}  // namespace weft::infer
