#pragma once
/// What shape inference asks of an op's operands and attributes. For infer*.cpp.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fmt/ranges.h>

#include <weft/spmd/error.hpp>
#include <weft/spmd/program/infer.hpp>

namespace weft::infer {

using Dims = std::span<const std::int64_t>;

template <typename... Args>
[[noreturn]] void reject(const OpSignature& op, fmt::format_string<Args...> format,
                         Args&&... args) {
  std::string types;
  for (const TensorType& type : op.operands)
    types += (types.empty() ? "" : ", ") + type.to_string();
  fail(Errc::invalid_argument, "{}({}): {}", to_string(op.kind), types,
       fmt::format(format, std::forward<Args>(args)...));
}

inline void expect_counts(const OpSignature& op, std::size_t operands, std::size_t attrs) {
  if (op.operands.size() != operands) {
    reject(op, "has {} operands; it takes {}", op.operands.size(), operands);
  }
  if (op.attrs.size() != attrs) {
    reject(op, "has {} attribute words; it takes {}", op.attrs.size(), attrs);
  }
}

inline void expect_equal_operands(const OpSignature& op, std::size_t first) {
  if (op.operands[first] != op.operands[first + 1]) {
    reject(op,
           "{} and {} differ; both must have one type (convert or broadcast_in_dim one of them)",
           op.operands[first].to_string(), op.operands[first + 1].to_string());
  }
}

inline int expect_dim(const OpSignature& op, std::int64_t dim, const Shape& shape) {
  if (dim < 0 || dim >= shape.size()) {
    reject(op, "dim {} is outside 0..{}", dim, shape.size() - 1);
  }
  return static_cast<int>(dim);
}

inline void expect_distinct(const OpSignature& op, Dims dims, const Shape& shape) {
  std::uint32_t seen = 0;
  for (const std::int64_t dim : dims) {
    const std::uint32_t bit = 1U << expect_dim(op, dim, shape);
    if ((seen & bit) != 0) reject(op, "dim {} is repeated in [{}]", dim, fmt::join(dims, ","));
    seen |= bit;
  }
}

inline void expect_ascending(const OpSignature& op, Dims dims, const Shape& shape) {
  expect_distinct(op, dims, shape);
  if (!std::is_sorted(dims.begin(), dims.end())) {
    reject(op, "dims [{}] must ascend", fmt::join(dims, ","));
  }
}

inline void expect_reducible(const OpSignature& op, std::int64_t kind) {
  if (kind < 0 || kind > static_cast<std::int64_t>(ReduceKind::min)) {
    reject(op, "{} is no ReduceKind", kind);
  }
  if (static_cast<ReduceKind>(kind) == ReduceKind::add && op.operands[0].dtype == DType::pred) {
    reject(op, "pred can't be added; convert it first");
  }
}

/// Atoms of the mesh, each once; none in a global program, which has no mesh to look at.
inline void expect_atom_lists(const OpSignature& op, Dims lists) {
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

}  // namespace weft::infer
