#pragma once
/// Computes the type of an op's result from the op's operands and attributes. Also provides the
/// checks that the rows' inference functions share.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/ranges.h>

#include <weft/sharding/mesh.hpp>
#include <weft/tensor/error.hpp>
#include <weft/tensor/type.hpp>

#include "spmd/ops/attributes.hpp"
#include "spmd/program/op_kind.hpp"

namespace weft {

struct WindowDim;

/// An op without its position in a program.
struct OpSignature {
  OpKind kind;
  std::span<const TensorType> operands;
  std::span<const std::int64_t> attrs;
  /// The result's type, for kinds whose attributes don't determine it: constant, iota,
  /// rng_bit_generator, convert, reshape, broadcast_in_dim and custom_call. For reduce, only the
  /// dtype is used. Other kinds ignore it.
  TensorType result;
  /// The mesh of the atoms. May be null for kinds without atoms, and for collective_permute, whose
  /// atoms are then unchecked.
  const Mesh* mesh = nullptr;
};

/// Returns the type of the op's result. Throws invalid_argument, with the op and the types of its
/// operands, if anything doesn't fit. Doesn't check indices into a program's tables.
TensorType infer_type(const OpSignature& op);

/// Returns whether `bits` packs distinct atoms of the mesh without a gap.
bool is_atom_list(const Mesh& mesh, std::uint64_t bits);

// Functions for the inference functions of rows. Before these run, the counts of operands and
// attribute words have been checked, and flags and enumerators are known to be in range.
namespace infer {

template <typename... Args>
[[noreturn]] void reject(const OpSignature& op, fmt::format_string<Args...> format,
                         Args&&... args) {
  std::string types;
  for (const TensorType& type : op.operands)
    types += (types.empty() ? "" : ", ") + type.to_string();
  fail(Errc::invalid_argument, "{}({}): {}", to_string(op.kind), types,
       fmt::format(format, std::forward<Args>(args)...));
}

/// Returns the type of operand 0.
TensorType same(const OpSignature& op);

inline void expect_words(const OpSignature& op, std::size_t count) {
  if (op.attrs.size() != count) {
    reject(op, "has {} attribute words; it takes {}", op.attrs.size(), count);
  }
}

inline void expect_equal_operands(const OpSignature& op, std::size_t first) {
  if (op.operands[first] != op.operands[first + 1]) {
    reject(op,
           "{} and {} differ; both must have one type (convert or broadcast_in_dim one of them)",
           op.operands[first].to_string(), op.operands[first + 1].to_string());
  }
}

inline void expect_predicate(const OpSignature& op, std::size_t operand) {
  const TensorType& type = op.operands[operand];
  if (type != TensorType{DType::pred, {}}) {
    reject(op, "the predicate is {}; expected pred[]", type.to_string());
  }
}

inline int expect_dim(const OpSignature& op, std::int64_t dim, const Shape& shape) {
  if (dim < 0 || dim >= shape.size()) {
    reject(op, "dim {} is outside 0..{}", dim, shape.size() - 1);
  }
  return static_cast<int>(dim);
}

inline void expect_distinct(const OpSignature& op, Words dims, const Shape& shape) {
  std::uint32_t seen = 0;
  for (const std::int64_t dim : dims) {
    const std::uint32_t bit = 1U << expect_dim(op, dim, shape);
    if ((seen & bit) != 0) reject(op, "dim {} is repeated in [{}]", dim, fmt::join(dims, ","));
    seen |= bit;
  }
}

inline void expect_ascending(const OpSignature& op, Words dims, const Shape& shape) {
  expect_distinct(op, dims, shape);
  if (!std::is_sorted(dims.begin(), dims.end())) {
    reject(op, "dims [{}] must ascend", fmt::join(dims, ","));
  }
}

/// Checks that operand 0 can be reduced. `word` is the attribute word that holds the ReduceKind.
inline void expect_reducible(const OpSignature& op, std::size_t word) {
  if (static_cast<ReduceKind>(op.attrs[word]) == ReduceKind::add &&
      op.operands[0].dtype == DType::pred) {
    reject(op, "pred can't be added; convert it first");
  }
}

/// Checks a list of at least one atom, and returns the number of chips in a group.
inline std::int64_t expect_atoms(const OpSignature& op, std::int64_t bits) {
  WEFT_CHECK(op.mesh != nullptr);
  const auto word = static_cast<std::uint64_t>(bits);
  if (word == 0 || !is_atom_list(*op.mesh, word)) {
    reject(op, "{:#x} isn't a list of distinct atoms of mesh {}, at least one", word,
           op.mesh->to_string());
  }
  return op.mesh->count(AtomList::from_bits(word));
}

/// Checks that the lists contain atoms of the mesh, each at most once. In a global program, which
/// has no mesh, the lists must be empty.
inline void expect_atom_lists(const OpSignature& op, Words lists) {
  AtomMask seen = 0;
  for (const std::int64_t bits : lists) {
    if (bits == 0) continue;
    WEFT_CHECK(op.mesh != nullptr);
    const auto word = static_cast<std::uint64_t>(bits);
    if (!is_atom_list(*op.mesh, word) || (AtomList::from_bits(word).mask() & seen) != 0) {
      reject(op, "{:#x} isn't a list of atoms of mesh {} that no other dim uses", word,
             op.mesh->to_string());
    }
    seen = static_cast<AtomMask>(seen | AtomList::from_bits(word).mask());
  }
}

/// Returns the number of windows over `size` elements of the operand's dim `dim`. (windows.cpp)
std::int64_t expect_windows(const OpSignature& op, int dim, const WindowDim& window,
                            std::int64_t size);

}  // namespace infer
}  // namespace weft
