#pragma once
/// Builder: appends ops to a Program with shape inference and checks, one function an op.

#include <cstdint>
#include <initializer_list>
#include <span>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/emitter.hpp"
#include "spmd/program/window.hpp"

namespace weft {

/// Every function throws invalid_argument with the op, the types and the current location where the
/// operands don't fit. Shapes must agree exactly: broadcasting is `broadcast_in_dim`.
class Builder : public Emitter {
 public:
  using Emitter::Emitter;

  /// A splat (`value` converted to the dtype), or row-major elements.
  ValueId constant(double value, TensorType type);
  ValueId constant(std::span<const std::byte> elements, TensorType type);
  ValueId iota(TensorType type, int dim);
  /// Words u32 of Philox4x32-10, which depend only on the state u32[4] and their place (leaf.cpp).
  ValueId rng_bit_generator(ValueId state, const Shape& shape);

  /// negate .. is_finite.
  ValueId unary(OpKind kind, ValueId x);
  ValueId convert(ValueId x, DType dtype);
  /// add .. power, logical_and: equal types.
  ValueId binary(OpKind kind, ValueId a, ValueId b);
  ValueId compare(CompareDirection direction, ValueId a, ValueId b);
  ValueId select(ValueId predicate, ValueId on_true, ValueId on_false);
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, std::span<const std::int64_t> perm);
  /// `dims[i]` is the result dim of operand dim i (ascending); a 1-sized operand dim expands.
  ValueId broadcast_in_dim(ValueId x, const Shape& shape, std::span<const std::int64_t> dims);

  /// x[start : limit : stride] of each dim.
  ValueId slice(ValueId x, std::span<const std::int64_t> start, std::span<const std::int64_t> limit,
                std::span<const std::int64_t> stride);
  /// In each dim, puts the scalar `padding` `low` times before x, `high` times after x, and
  /// `interior` times between its elements.
  ValueId pad(ValueId x, ValueId padding, std::span<const std::int64_t> low,
              std::span<const std::int64_t> high, std::span<const std::int64_t> interior);
  /// At least one part. The parts' sizes may differ in `dim` only.
  ValueId concatenate(std::span<const ValueId> parts, int dim);
  /// x with its elements in reverse order along `dims` (in any order).
  ValueId reverse(ValueId x, std::span<const std::int64_t> dims);
  /// table[index] along dim 0: index.shape + the table's other dims; zeros for an index outside.
  ValueId gather(ValueId table, ValueId index);
  /// [rows, ..]: zeros, with updates[i] added to row index[i]; drops updates of rows outside.
  ValueId scatter(ValueId index, ValueId updates, std::int64_t rows);
  /// x[start : start + size] of each dim; `starts`: i32 scalars, clamped so that the slice is in x.
  ValueId dynamic_slice(ValueId x, std::span<const ValueId> starts,
                        std::span<const std::int64_t> sizes);
  /// x with `update` in the place that dynamic_slice would read.
  ValueId dynamic_update_slice(ValueId x, ValueId update, std::span<const ValueId> starts);

  // Along the last dim.
  /// i32: the order of x's elements; equal ones stay as they are, NaN counts as the largest. With
  /// `places`, i32: what the order has at these.
  ValueId argsort(ValueId x, bool descending, ValueId places = kNoId);
  /// x[.., index[.., k]]; 0 for an index outside.
  ValueId take_along(ValueId x, ValueId index);
  /// [.., size]: zeros, with updates[.., k] added at index[.., k]; drops those outside.
  ValueId scatter_along(ValueId index, ValueId updates, std::int64_t size);
  /// y[i] = a[i] y[i - 1] + b[i] with y[-1] = 0; reversed: from the last element to the first.
  ValueId linear_recurrence(ValueId a, ValueId b, bool reversed);

  struct DotDims {
    DimList lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
    SkipZeros skip_zeros = SkipZeros::never;
  };
  ValueId dot_general(ValueId lhs, ValueId rhs, const DotDims& dims);
  /// Result dims: the operand's without `dims` (in any order).
  ValueId reduce(ReduceKind kind, ValueId x, std::span<const std::int64_t> dims);

  /// The windows' sizes are those of rhs, whatever `convolution` says.
  ValueId convolution(ValueId lhs, ValueId rhs, const Convolution& convolution);
  ValueId reduce_window(ValueId x, const WindowReduction& reduction);
  /// y: an element for each window of x.
  ValueId select_and_scatter(ValueId x, ValueId y, const WindowReduction& reduction);

  // Composites (row.hpp): one kernel each.
  /// Over the last dim.
  ValueId softmax(ValueId x);
  ValueId log_softmax(ValueId x);
  /// softmax_grad, log_softmax_grad: the operand's cotangent, given the result y and its own, g.
  ValueId softmax_grad(OpKind kind, ValueId y, ValueId g);
  /// Along the last dim.
  ValueId normalize(ValueId x, const Normalization& normalization);
  ValueId normalize_grad(ValueId x, ValueId g, const Normalization& normalization);
  /// q[B,H,S,K], k[B,H,T,K], v[B,H,T,E]: [B,H,S,E]. `bias`: none, or [B|1,H|1,S|1,T|1], pred (the
  /// keys that are seen) or added to the scaled scores.
  ValueId attention(ValueId q, ValueId k, ValueId v, const AttentionForm& form,
                    ValueId bias = kNoId);
  /// The cotangents of q, k and v in one tensor, [B,H,S+T+T,K]; E must be K.
  ValueId attention_grad(ValueId q, ValueId k, ValueId v, ValueId y, ValueId g,
                         const AttentionForm& form, ValueId bias = kNoId);
  /// x[.., C], labels i32[..]: a loss for each row, [..].
  ValueId cross_entropy(ValueId x, ValueId labels);
  ValueId cross_entropy_grad(ValueId x, ValueId labels, ValueId g);

  /// The operands and the result must fit the target's rule.
  ValueId custom_call(const CustomTarget& target, std::span<const ValueId> operands,
                      const TensorType& result);

  /// y, whose gradient the loop's function `number` makes, for all operands but the first, y.
  ValueId custom_gradient(std::span<const ValueId> operands, std::int64_t number);

  ValueId sharding_constraint(ValueId x, const Sharding& sharding);
  ValueId optimization_barrier(ValueId x);
  ValueId copy(ValueId x);
  ValueId check_index(ValueId index, std::int64_t limit, std::int64_t ignored = 0);
  /// The length of a KeyValueCache for `capacity` tokens, to which `new_tokens` are to be added.
  ValueId check_room(ValueId length, std::int64_t capacity, std::int64_t new_tokens);

  /// `length` 0: the loop has a `test`.
  ValueId loop(std::int64_t length, bool reversed);
  /// Begins the first of two branches.
  ValueId cond(ValueId predicate);
  /// An op of the border of a loop (loop.cpp: carry, item, test, stack, next) or of a cond
  /// (branch.cpp: otherwise, merge), which is the first operand.
  ValueId border(OpKind kind, std::initializer_list<ValueId> operands);

  /// Borders of shard_map's functions. Attributes: the manual atoms, then those of each dim.
  ValueId enter(ValueId x, std::span<const std::int64_t> attrs);
  ValueId leave(ValueId x, std::span<const std::int64_t> attrs);
  /// A scalar: the chip's number in its group, in a function with these manual atoms.
  ValueId number_in_group(DType dtype, AtomList group, AtomMask manual);

  // Collectives, for per-chip programs and shard_map's functions: sizes follow from the mesh.
  ValueId all_reduce(const Mesh& mesh, ValueId x, AtomList atoms, ReduceKind kind);
  ValueId all_gather(const Mesh& mesh, ValueId x, AtomList atoms, int dim);
  ValueId reduce_scatter(const Mesh& mesh, ValueId x, AtomList atoms, ReduceKind kind, int dim);
  ValueId all_to_all(const Mesh& mesh, ValueId x, AtomList atoms, int split_dim, int concat_dim);
  ValueId collective_permute(ValueId x, std::span<const AtomList> from,
                             std::span<const AtomList> to);
  /// sources[i]: the number, in the group of chips, of the one whose x chip number i gets.
  ValueId ppermute(const Mesh& mesh, ValueId x, AtomList atoms, std::span<const int> sources);
  ValueId all_slice(const Mesh& mesh, ValueId x, AtomList atoms, int dim);
};

}  // namespace weft
