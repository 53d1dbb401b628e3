#pragma once
/// Lifetimes of the values that a plan places itself.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Ops, both included, between which a value's bytes must be its own: from the op that makes it to
/// the last that reads it. An input's is from op 0. What lies in one range with others, of a
/// bucket, lives as long as the range; what a loop reads or makes (fuse.hpp), through all of it.
struct Lifetime {
  OpId first = 0;
  OpId last = 0;

  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// One per value of a program that runs in these steps. A shared value's group reads it until its
/// chips have met in a collective after the last op that reads it: the lifetime ends with that, or
/// with the program.
std::vector<Lifetime> lifetimes_of(const Program& program, std::span<const PlanStep> steps,
                                   const std::vector<Slot>& slots);

/// Of two shared values: whether they are gathered by different groups of chips.
bool groups_differ(const Program& program, ValueId a, ValueId b);

/// Whether two values can't have the same bytes. Shared values of different groups can't: a chip
/// meets those that read the one, not those that read the other. Placement asks this of most pairs.
inline bool exclude_each_other(const Program& program, const std::vector<Slot>& slots,
                               const std::vector<Lifetime>& lifetimes, ValueId a, ValueId b) {
  if (slots[a].place != slots[b].place) return false;
  if (lifetimes[a].overlaps(lifetimes[b])) return true;
  return slots[a].place == Place::shared && groups_differ(program, a, b);
}

/// Whether some chip may still read a shared value when another has ended the program, so that all
/// must meet before the next.
bool needs_final_barrier(const Plan& plan, const Mesh& mesh);

inline constexpr std::uint64_t kSlotAlignment = 64;

/// Bytes that a value takes in its region.
std::uint64_t slot_bytes(const TensorType& type);

}  // namespace weft
