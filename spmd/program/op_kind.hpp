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
  // Contraction and reduction.
  dot_general =
      70,       ///< {batch count, contracting count, lhs batch.., rhs batch.., lhs contracting..,
                ///< rhs contracting..}; result dims: batch, lhs free, rhs free
  reduce = 71,  ///< {ReduceKind, dims...}; the dims are dropped
  // Structural.
  sharding_constraint = 90,  ///< {index in Program::constraints}; identity
  copy = 91,                 ///< identity into a buffer of its own
  // Collectives; only in per-chip programs. Atom lists are AtomList::bits().
  all_reduce = 100,      ///< {atoms, ReduceKind}
  all_gather = 101,      ///< {atoms, dim}
  reduce_scatter = 102,  ///< {atoms, ReduceKind, dim}
  all_to_all = 103,      ///< {atoms, dim that gets split, dim that gets concatenated}
  collective_permute =
      104,          ///< {from atoms of each dim.., to atoms of each dim..}: a value sharded
                    ///< by `from` becomes sharded by `to`, equal parts (permute.hpp)
  all_slice = 105,  ///< {atoms, dim}: this chip's part, no traffic
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

constexpr bool is_unary(OpKind kind) { return kind >= OpKind::negate && kind <= OpKind::cosine; }
constexpr bool is_binary(OpKind kind) { return kind >= OpKind::add && kind <= OpKind::logical_and; }
constexpr bool is_elementwise(OpKind kind) {
  return is_unary(kind) || is_binary(kind) || kind == OpKind::select;
}
/// Has to meet other chips. all_slice doesn't.
constexpr bool is_collective(OpKind kind) {
  return kind >= OpKind::all_reduce && kind <= OpKind::collective_permute;
}

}  // namespace weft
