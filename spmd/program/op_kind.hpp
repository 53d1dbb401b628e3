#pragma once
/// The operations of a Program, by StableHLO's names.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

/// Attributes (i64 words of `Program::attrs`) are given beside each kind. Values are stable.
enum class OpKind : std::uint16_t {
  // Leaves.
  constant = 0,  ///< {byte offset in const_pool, bytes}; one element's bytes mean a splat
  iota = 1,      ///< {dim, atoms}; after partitioning + index_in(atoms) * local size of dim
  /// (u32[4] state) {atoms of each dim..}: the words of Philox4x32-10. Element i of the whole
  /// tensor, row-major, is word i % 4 of the block with key state[0..1] and counter (low and high
  /// word of i / 4, state[2..3]), so that it depends on no sharding. Atoms: those that shard the
  /// result in a chip's program, 0 in a global one.
  rng_bit_generator = 2,
  // Elementwise, one operand.
  negate = 10,
  sign = 11,
  abs = 12,
  exponential = 13,
  log = 14,
  tanh = 15,
  logistic = 16,
  sqrt = 17,
  rsqrt = 18,
  convert = 19,  ///< to the result's dtype
  sine = 20,
  cosine = 21,
  is_finite = 22,  ///< result pred
  // Elementwise, two operands of equal shape.
  add = 30,
  subtract = 31,
  multiply = 32,
  divide = 33,
  maximum = 34,
  minimum = 35,
  power = 36,
  compare = 37,  ///< {CompareDirection}; result pred
  logical_and = 38,
  // Elementwise, three operands.
  select = 50,  ///< (pred, on_true, on_false)
  // Shape.
  reshape = 60,
  transpose = 61,         ///< {perm...}: result dim i is operand dim perm[i]
  broadcast_in_dim = 62,  ///< {result dim of each operand dim...}
  slice = 63,             ///< {start.., limit.., stride..}, of each dim
  pad = 64,               ///< (x, scalar) {low.., high.., interior..}, counts of it in each dim
  concatenate = 65,       ///< {dim}; 1 to kConcatenateCountMax operands
  reverse = 66,           ///< {dims...}, ascending
  // Contraction and reduction.
  dot_general =
      70,       ///< {batch count, contracting count, lhs batch.., rhs batch.., lhs contracting..,
                ///< rhs contracting..}; result dims: batch, lhs free, rhs free
  reduce = 71,  ///< {ReduceKind, dims...}; the dims are dropped
  convolution =
      75,  ///< (lhs, rhs) {lhs dims.., rhs dims.., result dims.., stride.., low.., high..,
           ///< lhs dilation.., rhs dilation.., reversed, group dims..}; see window.hpp
  reduce_window =
      76,  ///< {ReduceKind, size.., stride.., low.., high.., base dilation.., dilation..}
  select_and_scatter =
      77,  ///< (x, y) {as reduce_window}: zeros but for each window's y at its max (min) in x, the
           ///< first in row-major order; what falls on one place is added up
  // Indexing by an i32 operand. `atoms` are those that shard dim 0 of the table (gather) or the
  // result (scatter) in a chip's program, where it begins with row index_in(atoms) * rows on the
  // chip; 0 in a global program.
  /// (table [rows, row..], index) {atoms}: [index.., row..]. An index outside 0..rows-1 gives 0s:
  /// the sum over chips that hold parts of the table is then what the whole table gives.
  gather = 80,
  /// (index, updates [index.., row..]) {rows, atoms}: [rows, row..], zeros to which the updates are
  /// added in index order; those outside are dropped. StableHLO's has an operand to add to: chips
  /// that hold parts of the index would each add it. Add it to the result instead.
  scatter = 81,
  dynamic_slice = 82,         ///< (x, start of each dim..) {size of each dim..}; scalar starts,
                              ///< clamped to 0..dim-size
  dynamic_update_slice = 83,  ///< (x, update, start of each dim..); starts as in dynamic_slice
  // Structural.
  sharding_constraint = 90,   ///< {index in Program::constraints}; identity
  copy = 91,                  ///< identity into a buffer of its own
  optimization_barrier = 92,  ///< identity; is never merged with another, nor what is made of it
  custom_call = 93,  ///< {index in Program::custom_targets}: a function of the program's own
  check_index = 94,  ///< (i32 index) {limit, ignored}: identity, or a failure (index_check.hpp)
  // Collectives; only in per-chip programs. Atom lists are AtomList::bits().
  all_reduce = 100,      ///< {atoms, ReduceKind}
  all_gather = 101,      ///< {atoms, dim}
  reduce_scatter = 102,  ///< {atoms, ReduceKind, dim}
  all_to_all = 103,      ///< {atoms, dim that gets split, dim that gets concatenated}
  collective_permute =
      104,          ///< {from atoms of each dim.., to atoms of each dim..}: a value sharded
                    ///< by `from` becomes sharded by `to`, equal parts (permute.hpp)
  all_slice = 105,  ///< {atoms, dim}: this chip's part, no traffic
  // Composites: what primitives could say too (decompose.hpp), as one op that has a kernel. Of a
  // floating dtype; composite.hpp has the attributes. `_grad`: the cotangent of the operand.
  softmax = 110,           ///< over the last dim
  softmax_grad = 111,      ///< (result, its cotangent)
  log_softmax = 112,       ///< over the last dim
  log_softmax_grad = 113,  ///< (result, its cotangent)
  normalize = 114,       ///< {center, eps}: (x - mean) / sqrt(mean square of that + eps) along the
                         ///< last dim; center = 0 leaves the mean in (rms norm)
  normalize_grad = 115,  ///< (operand, the result's cotangent) {center, eps}
  /// (q[B,H,S,K], k[B,H,T,K], v[B,H,T,E]) {causal, scale, atoms}: softmax(scale q k^T) v, as
  /// [B,H,S,E]; causal: query i sees keys 0..i. Atoms: those that shard S in a chip's program,
  /// where query 0 is number index_in(atoms) * S on the chip; 0 in a global one.
  attention = 116,
  /// (q, k, v, result, its cotangent) {causal, scale}, K = E: the cotangents of q, k and v, one
  /// behind the other, as [B,H,S+T+T,K].
  attention_grad = 117,
  /// (x[.., C], labels i32[..]): of each row, the log of the sum of e^x less x at the label, as
  /// [..]; 0 where the label isn't in 0..C-1.
  cross_entropy = 118,
  cross_entropy_grad = 119,  ///< (x, labels, the result's cotangent)
};

enum class CompareDirection : std::uint8_t { eq, ne, lt, le, gt, ge };
/// "eq", "ne", ...
std::string_view to_string(CompareDirection direction) noexcept;

/// "dot_general".
std::string_view to_string(OpKind kind) noexcept;
/// Throws invalid_argument for an unknown name.
OpKind parse_op_kind(std::string_view name);

/// Builder::concatenate takes more, several at a time.
inline constexpr std::size_t kConcatenateCountMax = 8;
inline constexpr std::size_t kCustomOperandCountMax = 8;

constexpr bool is_unary(OpKind kind) { return kind >= OpKind::negate && kind <= OpKind::is_finite; }
constexpr bool is_binary(OpKind kind) { return kind >= OpKind::add && kind <= OpKind::logical_and; }
constexpr bool is_elementwise(OpKind kind) {
  return is_unary(kind) || is_binary(kind) || kind == OpKind::select;
}
/// Has to meet other chips. all_slice doesn't.
constexpr bool is_collective(OpKind kind) {
  return kind >= OpKind::all_reduce && kind <= OpKind::collective_permute;
}

/// The result holds the operand's elements, or other chips', as they are.
constexpr bool moves_only(OpKind kind) {
  return kind == OpKind::copy || kind == OpKind::optimization_barrier ||
         kind == OpKind::all_slice || is_collective(kind);
}

constexpr bool is_composite(OpKind kind) {
  return kind >= OpKind::softmax && kind <= OpKind::cross_entropy_grad;
}

}  // namespace weft
