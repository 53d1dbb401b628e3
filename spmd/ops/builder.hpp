#pragma once
/// Builder: appends ops to a Program with shape inference and checks. It has one function per op.

#include <cstdint>
#include <initializer_list>
#include <span>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/emitter.hpp"
#include "spmd/program/window.hpp"

namespace weft {

/// Appends ops. If the operands don't fit, every function throws invalid_argument with the op, the
/// types and the current location. Shapes must agree exactly: only `broadcast_in_dim` broadcasts.
class Builder : public Emitter {
 public:
  using Emitter::Emitter;

  /// Appends a constant: `value`, converted to the dtype, everywhere; or row-major elements.
  ValueId constant(double value, TensorType type);
  ValueId constant(std::span<const std::byte> elements, TensorType type);
  ValueId iota(TensorType type, int dim);
  /// Appends random words of Philox4x32-10, which depend only on `state`, u32[4], and their index.
  ValueId rng_bit_generator(ValueId state, const Shape& shape);

  /// Appends an elementwise op with one operand: one of the kinds from `negate` to `is_finite`.
  ValueId unary(OpKind kind, ValueId x);
  ValueId convert(ValueId x, DType dtype);
  /// Appends an elementwise op on equal types: one of `add` to `power`, or `logical_and`.
  ValueId binary(OpKind kind, ValueId a, ValueId b);
  ValueId compare(CompareDirection direction, ValueId a, ValueId b);
  ValueId select(ValueId predicate, ValueId on_true, ValueId on_false);
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, std::span<const std::int64_t> perm);
  /// Operand dim i becomes result dim `dims[i]` (ascending). A dim of size 1 is repeated to any
  /// size.
  ValueId broadcast_in_dim(ValueId x, const Shape& shape, std::span<const std::int64_t> dims);

  /// Returns x[start : limit : stride], in each dim.
  ValueId slice(ValueId x, std::span<const std::int64_t> start, std::span<const std::int64_t> limit,
                std::span<const std::int64_t> stride);
  /// In each dim, puts the scalar `padding` `low` times before x, `high` times after x, and
  /// `interior` times between its elements.
  ValueId pad(ValueId x, ValueId padding, std::span<const std::int64_t> low,
              std::span<const std::int64_t> high, std::span<const std::int64_t> interior);
  /// Joins the parts, at least one, along `dim`, in which their sizes may differ.
  ValueId concatenate(std::span<const ValueId> parts, int dim);
  /// Returns x with its elements in reverse order along `dims` (in any order).
  ValueId reverse(ValueId x, std::span<const std::int64_t> dims);
  /// Returns the rows table[index], as [index.., row..]. A row is 0 if its index is out of range.
  ValueId gather(ValueId table, ValueId index);
  /// Returns zeros [rows, ..] plus each updates[i] at row index[i]. Skips indices out of range.
  ValueId scatter(ValueId index, ValueId updates, std::int64_t rows);
  /// Returns x[start : start + size] in each dim. The i32 scalars `starts` are clamped to fit x.
  ValueId dynamic_slice(ValueId x, std::span<const ValueId> starts,
                        std::span<const std::int64_t> sizes);
  /// Returns x with `update` instead of the part that dynamic_slice would return.
  ValueId dynamic_update_slice(ValueId x, ValueId update, std::span<const ValueId> starts);

  // The following functions work along the last dim. argsort returns, as i32, the order in which
  // x's elements are sorted. The sort is stable, and NaN is the largest. With `places` (i32), it
  // returns only the entries of the order at these positions.
  ValueId argsort(ValueId x, bool descending, ValueId places = kNoId);
  /// Returns x[.., index[.., k]], or 0 where the index is out of range.
  ValueId take_along(ValueId x, ValueId index);
  /// Returns zeros [.., size] plus updates[.., k] at each index[.., k]. Skips indices out of range.
  ValueId scatter_along(ValueId index, ValueId updates, std::int64_t size);
  /// Computes y[i] = a[i] y[i - 1] + b[i] with y[-1] = 0. If `reversed`, runs from the last element
  /// to the first.
  ValueId linear_recurrence(ValueId a, ValueId b, bool reversed);

  struct DotDims {
    DimList lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
    SkipZeros skip_zeros = SkipZeros::never;
  };
  ValueId dot_general(ValueId lhs, ValueId rhs, const DotDims& dims);
  /// Reduces x over `dims` (in any order). The result has the remaining dims.
  ValueId reduce(ReduceKind kind, ValueId x, std::span<const std::int64_t> dims);

  /// Takes the sizes of the windows from rhs, and ignores those in `convolution`.
  ValueId convolution(ValueId lhs, ValueId rhs, const Convolution& convolution);
  ValueId reduce_window(ValueId x, const WindowReduction& reduction);
  /// Adds element i of y to zeros of x's shape, at the element that window i of x selects.
  ValueId select_and_scatter(ValueId x, ValueId y, const WindowReduction& reduction);

  // Composites have their own kernels (row.hpp). The next two functions work along the last dim.
  ValueId softmax(ValueId x);
  ValueId log_softmax(ValueId x);
  /// Appends softmax_grad or log_softmax_grad. Returns the operand's cotangent, given the op's
  /// result y and the cotangent g of that result.
  ValueId softmax_grad(OpKind kind, ValueId y, ValueId g);
  /// The next two functions also work along the last dim.
  ValueId normalize(ValueId x, const Normalization& normalization);
  ValueId normalize_grad(ValueId x, ValueId g, const Normalization& normalization);
  /// Takes q[B,H,S,K], k[B,H,T,K], v[B,H,T,E] and returns [B,H,S,E]. `bias` is absent or
  /// [B|1,H|1,S|1,T|1]. A bias of pred is true for the visible keys. Any other bias is added to the
  /// scaled scores.
  ValueId attention(ValueId q, ValueId k, ValueId v, const AttentionForm& form,
                    ValueId bias = kNoId);
  /// Returns the cotangents of q, k and v in one tensor, [B,H,S+T+T,K]. E must be K.
  ValueId attention_grad(ValueId q, ValueId k, ValueId v, ValueId y, ValueId g,
                         const AttentionForm& form, ValueId bias = kNoId);
  /// Takes x[.., C] and labels i32[..], and returns a loss for each row, [..].
  ValueId cross_entropy(ValueId x, ValueId labels);
  ValueId cross_entropy_grad(ValueId x, ValueId labels, ValueId g);

  /// Appends a call of a custom op. The operands and the result must fit the target's rule.
  ValueId custom_call(const CustomTarget& target, std::span<const ValueId> operands,
                      const TensorType& result);

  /// Returns operand 0. custom_vjp()'s function `number` gives the other operands their gradients.
  ValueId custom_gradient(std::span<const ValueId> operands, std::int64_t number);

  ValueId sharding_constraint(ValueId x, const Sharding& sharding);
  ValueId optimization_barrier(ValueId x);
  ValueId copy(ValueId x);
  ValueId check_index(ValueId index, std::int64_t limit, std::int64_t ignored = 0);
  /// Appends a check that a KeyValueCache of this length has room for `new_tokens`.
  ValueId check_room(ValueId length, std::int64_t capacity, std::int64_t new_tokens);

  /// Begins a loop of `length` iterations. If `length` is 0, the loop runs until its `test` fails.
  ValueId loop(std::int64_t length, bool reversed);
  /// Begins the first of two branches.
  ValueId cond(ValueId predicate);
  /// Appends an op at the border of a loop (loop.cpp: carry, item, test, stack, next) or of a cond
  /// (branch.cpp: otherwise, merge). The loop or cond is the first operand.
  ValueId border(OpKind kind, std::initializer_list<ValueId> operands);

  /// Appends the op at the beginning or end of a shard_map function. The attributes are the manual
  /// atoms, then the atoms of each dim.
  ValueId enter(ValueId x, std::span<const std::int64_t> attrs);
  ValueId leave(ValueId x, std::span<const std::int64_t> attrs);
  /// Returns the chip's number in its group, as a scalar, in a function with these manual atoms.
  ValueId number_in_group(DType dtype, AtomList group, AtomMask manual);

  // Collectives, for per-chip programs and shard_map's functions. The mesh determines the sizes.
  ValueId all_reduce(const Mesh& mesh, ValueId x, AtomList atoms, ReduceKind kind);
  ValueId all_gather(const Mesh& mesh, ValueId x, AtomList atoms, int dim);
  ValueId reduce_scatter(const Mesh& mesh, ValueId x, AtomList atoms, ReduceKind kind, int dim);
  ValueId all_to_all(const Mesh& mesh, ValueId x, AtomList atoms, int split_dim, int concat_dim);
  ValueId collective_permute(ValueId x, std::span<const AtomList> from,
                             std::span<const AtomList> to);
  /// Gives chip i of a group the x of the group's chip sources[i].
  ValueId ppermute(const Mesh& mesh, ValueId x, AtomList atoms, std::span<const int> sources);
  ValueId all_slice(const Mesh& mesh, ValueId x, AtomList atoms, int dim);
};

}  // namespace weft
