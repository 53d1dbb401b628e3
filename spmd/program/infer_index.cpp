#include <weft/spmd/program/infer_index.hpp>

#include <vector>

#include <weft/spmd/program/infer_checks.hpp>

namespace weft::infer {
namespace {

void expect_index(const OpSignature& op, std::size_t operand) {
  if (op.operands[operand].dtype != DType::i32) {
    reject(op, "the index is {}; it must be i32", op.operands[operand].to_string());
  }
}

TensorType gather(const OpSignature& op) {
  expect_counts(op, 2, 1);
  expect_index(op, 1);
  expect_atom_lists(op, op.attrs);
  const auto& [dtype, table] = op.operands[0];
  const Shape& index = op.operands[1].shape;
  if (table.size() == 0) reject(op, "the table has no rows; it needs one dim at least");
  std::vector<std::int64_t> shape(index.begin(), index.end());
  shape.insert(shape.end(), table.begin() + 1, table.end());
  if (shape.size() > kDimCountMax) {
    reject(op, "the result would have {} dims; at most {} are supported", shape.size(),
           kDimCountMax);
  }
  return {dtype, Shape(Dims(shape))};
}

TensorType scatter(const OpSignature& op) {
  expect_counts(op, 2, 2);
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
  return {dtype, Shape(Dims(shape))};
}

/// The operands from `first` on are i32 scalars, one for each dim of operand 0.
void expect_starts(const OpSignature& op, std::size_t first) {
  const auto dims = op.operands.empty() ? 0 : op.operands[0].shape.size();
  expect_counts(op, first + static_cast<std::size_t>(dims), op.attrs.size());
  for (std::size_t i = first; i < op.operands.size(); ++i) {
    if (op.operands[i] != TensorType{DType::i32, {}}) {
      reject(op, "the start of dim {} is {}; it must be i32[]", i - first,
             op.operands[i].to_string());
    }
  }
}

void expect_part(const OpSignature& op, Dims part) {
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

TensorType dynamic_slice(const OpSignature& op) {
  expect_starts(op, 1);
  expect_part(op, op.attrs);
  return {op.operands[0].dtype, Shape(op.attrs)};
}

TensorType dynamic_update_slice(const OpSignature& op) {
  expect_starts(op, 2);
  expect_counts(op, op.operands.size(), 0);
  expect_part(op, op.operands[1].shape);
  if (op.operands[1].dtype != op.operands[0].dtype) {
    reject(op, "the update must have dtype {}", to_string(op.operands[0].dtype));
  }
  return op.operands[0];
}

TensorType check_index(const OpSignature& op) {
  expect_counts(op, 1, 2);
  if (op.operands[0].dtype != DType::i32) reject(op, "the index must be i32");
  return op.operands[0];
}

TensorType rng_bit_generator(const OpSignature& op) {
  expect_counts(op, 1, static_cast<std::size_t>(op.result.shape.size()));
  expect_atom_lists(op, op.attrs);
  if (op.operands[0] != TensorType{DType::u32, {4}}) reject(op, "the state must be u32[4]");
  if (op.result.dtype != DType::u32) {
    reject(op, "gives u32, not {}", to_string(op.result.dtype));
  }
  return op.result;
}

}  // namespace

TensorType index_op(const OpSignature& op) {
  switch (op.kind) {
    case OpKind::check_index: return check_index(op);
    case OpKind::gather: return gather(op);
    case OpKind::scatter: return scatter(op);
    case OpKind::dynamic_slice: return dynamic_slice(op);
    case OpKind::dynamic_update_slice: return dynamic_update_slice(op);
    default: return rng_bit_generator(op);
  }
}

}  // namespace weft::infer
