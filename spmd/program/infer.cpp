#include <weft/spmd/program/infer.hpp>

#include <weft/spmd/program/infer_checks.hpp>
#include <weft/spmd/program/infer_composite.hpp>
#include <weft/spmd/program/infer_index.hpp>
#include <weft/spmd/program/infer_shape.hpp>
#include <weft/spmd/program/infer_window.hpp>

namespace weft {
namespace {

using namespace infer;

/// Number of chips that the atom list divides by.
std::int64_t expect_atoms(const OpSignature& op, std::int64_t bits) {
  WEFT_CHECK(op.mesh != nullptr);
  const auto word = static_cast<std::uint64_t>(bits);
  if (word == 0 || !is_atom_list(*op.mesh, word)) {
    reject(op, "{:#x} isn't a list of distinct atoms of mesh {}, at least one", word,
           op.mesh->to_string());
  }
  return op.mesh->count(AtomList::from_bits(word));
}

void split(const OpSignature& op, Shape& shape, int dim, std::int64_t parts) {
  if (shape[dim] % parts != 0) {
    reject(op, "size {} of dim {} isn't a multiple of the {} chips of the group", shape[dim], dim,
           parts);
  }
  shape[dim] /= parts;
}

TensorType join(const TensorType& type, int dim, std::int64_t parts) {
  Shape shape = type.shape;
  shape[dim] *= parts;
  return {type.dtype, Shape(Dims(shape))};
}

TensorType infer_leaf(const OpSignature& op) {
  expect_counts(op, 0, 2);
  if (op.kind == OpKind::constant) {
    if (op.attrs[1] != op.result.bytes() && op.attrs[1] != byte_size(op.result.dtype)) {
      reject(op, "{} has {} bytes, but {} are given ({} for a splat)", op.result.to_string(),
             op.result.bytes(), op.attrs[1], byte_size(op.result.dtype));
    }
    return op.result;
  }
  if (op.result.dtype == DType::pred) reject(op, "the result can't be pred");
  expect_dim(op, op.attrs[0], op.result.shape);
  if (op.attrs[1] != 0) expect_atoms(op, op.attrs[1]);
  return op.result;
}

TensorType infer_unary(const OpSignature& op) {
  expect_counts(op, 1, 0);
  const TensorType& x = op.operands[0];
  if (op.kind == OpKind::convert) {
    if (op.result.shape != x.shape) {
      reject(op, "result {} has another shape", op.result.to_string());
    }
    return op.result;
  }
  const bool takes_integers =
      op.kind == OpKind::negate || op.kind == OpKind::sign || op.kind == OpKind::abs;
  const bool is_signed_integer = x.dtype == DType::i32 || x.dtype == DType::i64;
  if (!is_floating(x.dtype) && !(takes_integers && is_signed_integer)) {
    reject(op, "needs a floating{} dtype; convert the operand first",
           takes_integers ? " or signed integer" : "");
  }
  if (op.kind == OpKind::is_finite) return {DType::pred, x.shape};
  return x;
}

TensorType infer_binary(const OpSignature& op) {
  expect_counts(op, 2, op.kind == OpKind::compare ? 1 : 0);
  expect_equal_operands(op, 0);
  const TensorType& type = op.operands[0];
  if (op.kind == OpKind::compare) {
    if (op.attrs[0] < 0 || op.attrs[0] > static_cast<std::int64_t>(CompareDirection::ge)) {
      reject(op, "{} is no CompareDirection", op.attrs[0]);
    }
    return {DType::pred, type.shape};
  }
  if ((op.kind == OpKind::logical_and) != (type.dtype == DType::pred)) {
    reject(op, "{}",
           type.dtype == DType::pred ? "pred has no arithmetic; convert it first"
                                     : "needs pred operands; compare first");
  }
  return type;
}

TensorType infer_select(const OpSignature& op) {
  expect_counts(op, 3, 0);
  expect_equal_operands(op, 1);
  const TensorType& predicate = op.operands[0];
  if (predicate.dtype != DType::pred || predicate.shape != op.operands[1].shape) {
    reject(op, "the first operand must be {}",
           TensorType{DType::pred, op.operands[1].shape}.to_string());
  }
  return op.operands[1];
}

void expect_pairs(const OpSignature& op, std::string_view what, Dims lhs_dims, Dims rhs_dims) {
  for (std::size_t i = 0; i < lhs_dims.size(); ++i) {
    const std::int64_t lhs = op.operands[0].shape[static_cast<int>(lhs_dims[i])];
    const std::int64_t rhs = op.operands[1].shape[static_cast<int>(rhs_dims[i])];
    if (lhs != rhs) {
      reject(op, "{} dims {} (size {}) and {} (size {}) must have one size", what, lhs_dims[i], lhs,
             rhs_dims[i], rhs);
    }
  }
}

TensorType infer_dot(const OpSignature& op) {
  expect_counts(op, 2, op.attrs.size());
  const auto in_range = [](std::int64_t count) { return count >= 0 && count <= kDimCountMax; };
  if (op.attrs.size() < 2 || !in_range(op.attrs[0]) || !in_range(op.attrs[1]) ||
      static_cast<std::int64_t>(op.attrs.size()) != 2 + 2 * (op.attrs[0] + op.attrs[1])) {
    reject(op, "attributes [{}] aren't {{batch count, contracting count, dims...}}",
           fmt::join(op.attrs, ","));
  }
  const TensorType& lhs = op.operands[0];
  const TensorType& rhs = op.operands[1];
  if (lhs.dtype != rhs.dtype || lhs.dtype == DType::pred) {
    reject(op, "both operands must have one dtype, not pred; convert first");
  }
  const DotDimsView dims = dot_dims(op.attrs);
  const auto distinct = [&](const Shape& shape, Dims batch, Dims contracting) {
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
  const auto append = [&](const Shape& from, Dims which) {
    for (const std::int64_t dim : which) shape.push_back(from[static_cast<int>(dim)]);
  };
  append(lhs.shape, dims.lhs_batch);
  append(lhs.shape, free_dims(lhs.shape.size(), dims.lhs_batch, dims.lhs_contracting));
  append(rhs.shape, free_dims(rhs.shape.size(), dims.rhs_batch, dims.rhs_contracting));
  if (shape.size() > kDimCountMax) {
    reject(op, "the result would have {} dims; at most {} are supported", shape.size(),
           kDimCountMax);
  }
  return {lhs.dtype, Shape(Dims(shape))};
}

TensorType infer_reduce(const OpSignature& op) {
  expect_counts(op, 1, std::max<std::size_t>(op.attrs.size(), 1));
  expect_reducible(op, op.attrs[0]);
  const TensorType& x = op.operands[0];
  const Dims dims = op.attrs.subspan(1);
  expect_ascending(op, dims, x.shape);
  DimList shape;
  for (int dim = 0; dim < x.shape.size(); ++dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) shape.push_back(x.shape[dim]);
  }
  return {x.dtype, Shape(Dims(shape))};
}

/// How the operands and the result fit together says the target (custom_rule.hpp).
TensorType infer_custom(const OpSignature& op) {
  if (op.operands.empty() || op.operands.size() > kCustomOperandCountMax) {
    reject(op, "has {} operands; it takes 1 to {}", op.operands.size(), kCustomOperandCountMax);
  }
  expect_counts(op, op.operands.size(), 1);
  return op.result;
}

TensorType infer_permute(const OpSignature& op) {
  const TensorType& x = op.operands.size() == 1 ? op.operands[0] : op.result;
  const auto num_dims = static_cast<std::size_t>(x.shape.size());
  expect_counts(op, 1, 2 * num_dims);
  if (op.mesh == nullptr) return x;
  for (const Dims side : {op.attrs.first(num_dims), op.attrs.last(num_dims)}) {
    AtomList all;
    for (const std::int64_t bits : side) {
      const auto word = static_cast<std::uint64_t>(bits);
      const AtomList atoms = AtomList::from_bits(word);
      if (!is_atom_list(*op.mesh, word) || (all.mask() & atoms.mask()) != 0) {
        reject(op, "{:#x} isn't a list of atoms of mesh {} that no other dim uses", word,
               op.mesh->to_string());
      }
      all.append(atoms);
    }
  }
  for (std::size_t dim = 0; dim < num_dims; ++dim) {
    const auto parts = [&](std::size_t i) {
      return op.mesh->count(AtomList::from_bits(static_cast<std::uint64_t>(op.attrs[i])));
    };
    if (parts(dim) != parts(num_dims + dim)) {
      reject(op, "dim {} is in {} parts before and {} after; the shards must keep their shape", dim,
             parts(dim), parts(num_dims + dim));
    }
  }
  return x;
}

TensorType infer_collective(const OpSignature& op) {
  const bool two_attrs = op.kind == OpKind::all_reduce || op.kind == OpKind::all_gather ||
                         op.kind == OpKind::all_slice;
  expect_counts(op, 1, two_attrs ? 2 : 3);
  const TensorType& x = op.operands[0];
  Shape shape = x.shape;
  const std::int64_t parts = expect_atoms(op, op.attrs[0]);
  switch (op.kind) {
    case OpKind::all_reduce: expect_reducible(op, op.attrs[1]); return x;
    case OpKind::all_gather: return join(x, expect_dim(op, op.attrs[1], shape), parts);
    case OpKind::all_slice: split(op, shape, expect_dim(op, op.attrs[1], shape), parts); break;
    case OpKind::reduce_scatter:
      expect_reducible(op, op.attrs[1]);
      split(op, shape, expect_dim(op, op.attrs[2], shape), parts);
      break;
    default: {
      const int split_dim = expect_dim(op, op.attrs[1], shape);
      const int concat_dim = expect_dim(op, op.attrs[2], shape);
      if (split_dim == concat_dim) reject(op, "dim {} is both split and concatenated", split_dim);
      split(op, shape, split_dim, parts);
      return join({x.dtype, shape}, concat_dim, parts);
    }
  }
  return {x.dtype, shape};
}

}  // namespace

TensorType infer_type(const OpSignature& op) {
  if (is_unary(op.kind)) return infer_unary(op);
  if (is_binary(op.kind)) return infer_binary(op);
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::iota: return infer_leaf(op);
    case OpKind::select: return infer_select(op);
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::broadcast_in_dim:
    case OpKind::slice:
    case OpKind::pad:
    case OpKind::concatenate:
    case OpKind::reverse: return infer::shape_op(op);
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::dynamic_slice:
    case OpKind::dynamic_update_slice:
    case OpKind::rng_bit_generator: return infer::index_op(op);
    case OpKind::dot_general: return infer_dot(op);
    case OpKind::reduce: return infer_reduce(op);
    case OpKind::convolution:
    case OpKind::reduce_window:
    case OpKind::select_and_scatter: return infer::window_op(op);
    case OpKind::softmax:
    case OpKind::softmax_grad:
    case OpKind::log_softmax:
    case OpKind::log_softmax_grad:
    case OpKind::normalize:
    case OpKind::normalize_grad:
    case OpKind::attention:
    case OpKind::attention_grad:
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_grad: return infer::composite_op(op);
    case OpKind::sharding_constraint: expect_counts(op, 1, 1); return op.operands[0];
    case OpKind::copy:
    case OpKind::optimization_barrier: expect_counts(op, 1, 0); return op.operands[0];
    case OpKind::custom_call: return infer_custom(op);
    case OpKind::check_index: return infer::index_op(op);
    case OpKind::collective_permute: return infer_permute(op);
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
    case OpKind::all_slice: return infer_collective(op);
    default: reject(op, "{} is no OpKind", static_cast<int>(op.kind));
  }
}

bool is_atom_list(const Mesh& mesh, std::uint64_t bits) {
  AtomMask seen = 0;
  for (; bits != 0; bits >>= 4) {
    const auto atom = static_cast<int>(bits & 15U);
    if (atom == 0 || atom > mesh.num_atoms() || ((seen >> atom) & 1U) != 0) return false;
    seen = static_cast<AtomMask>(seen | (1U << atom));
  }
  return true;
}

std::array<std::span<const std::int64_t>, 3> triples(std::span<const std::int64_t> attrs) {
  const std::size_t dims = attrs.size() / 3;
  return {attrs.first(dims), attrs.subspan(dims, dims), attrs.last(dims)};
}

bool is_whole_dim(std::span<const std::int64_t> attrs, std::size_t dim, const Shape& from) {
  const auto [start, limit, stride] = triples(attrs);
  return start[dim] == 0 && limit[dim] == from[static_cast<int>(dim)] && stride[dim] == 1;
}

std::span<const std::int64_t> position_atoms(OpKind kind, std::span<const std::int64_t> attrs) {
  switch (kind) {
    case OpKind::rng_bit_generator:
    case OpKind::gather: return attrs;
    case OpKind::iota:
    case OpKind::scatter: return attrs.subspan(1);
    case OpKind::attention: return attrs.subspan(2);
    default: return {};
  }
}

DotDimsView dot_dims(std::span<const std::int64_t> attrs) {
  const auto batch = static_cast<std::size_t>(attrs[0]);
  const auto contracting = static_cast<std::size_t>(attrs[1]);
  const Dims dims = attrs.subspan(2);
  return {dims.subspan(0, batch), dims.subspan(batch, batch), dims.subspan(2 * batch, contracting),
          dims.subspan(2 * batch + contracting, contracting)};
}

DimList free_dims(int num_dims, Dims batch, Dims contracting) {
  const auto has = [](Dims dims, std::int64_t dim) {
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
  };
  DimList result;
  for (std::int64_t dim = 0; dim < num_dims; ++dim) {
    if (!has(batch, dim) && !has(contracting, dim)) result.push_back(dim);
  }
  return result;
}

}  // namespace weft
