#pragma once
/// Lifetimes of a plan's temporaries.

#include <cstdint>
#include <vector>

#include <weft/spmd/program/program.hpp>

namespace weft {

/// Ops, both included, between which a value's bytes must be its own: from the op that makes it to
/// the last that reads it. An input's is from op 0.
struct Lifetime {
  OpId first = 0;
  OpId last = 0;

  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// One per value.
std::vector<Lifetime> lifetimes_of(const Program& program);

inline constexpr std::uint64_t kSlotAlignment = 64;

/// Bytes that a value takes among the temporaries.
std::uint64_t slot_bytes(const TensorType& type);

}  // namespace weft
