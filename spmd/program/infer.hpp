#pragma once
/// Shape inference: what each op asks of its operands and attributes, and what it gives. Builder
/// and verify share it.

#include <array>
#include <cstdint>
#include <span>

#include <weft/spmd/mesh/mesh.hpp>
#include <weft/spmd/program/op_kind.hpp>
#include <weft/spmd/program/type.hpp>

namespace weft {

/// An op without its place in a program.
struct OpSignature {
  OpKind kind;
  std::span<const TensorType> operands;
  std::span<const std::int64_t> attrs;
  /// What the result is to be, for the kinds whose attributes don't say it: constant, iota,
  /// rng_bit_generator, convert, reshape, broadcast_in_dim, custom_call. Others don't read it.
  TensorType result;
  /// May be null for kinds without atoms and for collective_permute (whose atoms then go
  /// unchecked).
  const Mesh* mesh = nullptr;
};

/// The type of the op's result. Throws invalid_argument, with the op and its operands' types, for
/// anything that doesn't fit. Indices into a program's tables are not looked at.
TensorType infer_type(const OpSignature& op);

/// Whether `bits` packs distinct atoms of the mesh without a gap.
bool is_atom_list(const Mesh& mesh, std::uint64_t bits);

/// The three lists in the attributes of a slice (start, limit, stride) and a pad (low, high,
/// interior).
std::array<std::span<const std::int64_t>, 3> triples(std::span<const std::int64_t> attrs);

/// Whether a slice with these attributes leaves the dim as it is.
bool is_whole_dim(std::span<const std::int64_t> attrs, std::size_t dim, const Shape& from);

/// The atom lists by which a chip's position takes part in its result: of iota, rng_bit_generator,
/// gather, scatter and attention. Empty for other kinds; zeros in a global program.
std::span<const std::int64_t> position_atoms(OpKind kind, std::span<const std::int64_t> attrs);

/// The attributes of a dot_general, in place.
struct DotDimsView {
  std::span<const std::int64_t> lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
};
/// `attrs` as infer_type accepts them.
DotDimsView dot_dims(std::span<const std::int64_t> attrs);
/// The dims below `num_dims` that are in neither list, ascending.
DimList free_dims(int num_dims, std::span<const std::int64_t> batch,
                  std::span<const std::int64_t> contracting);

}  // namespace weft
