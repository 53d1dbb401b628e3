#pragma once
/// Lifetimes: the ops during which the values of a plan need their memory. place_values() assigns
/// memory.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {

/// The first and the last op between which a value's bytes must be its own. The lifetime lasts from
/// the op that makes the value (op 0 for an input) to the last op that reads it, both included. All
/// operands of a bucket live equally long, and so do all its results. Operands and results of a
/// collective with a wait live until the wait. A value that a fused loop (fuse.hpp) reads or makes
/// lives through the whole loop. So does a value that a loop of the program (control/loops.hpp)
/// reads from outside, carries or stacks.
struct Lifetime {
  OpId first = 0;
  OpId last = 0;

  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// Returns one lifetime per value of a program that runs in these steps. The lifetime of a shared
/// value begins with the op that writes a part of it in place. Because other chips may read the
/// value later than this chip, it ends with the first collective after the last reader in which all
/// chips that share the value meet, or with the program. So does the lifetime of a reduce_scatter's
/// operand that loops add up themselves (shared.hpp).
std::vector<Lifetime> lifetimes_of(const Program& program, std::span<const PlanStep> steps,
                                   const std::vector<Slot>& slots);

/// Returns whether two values must not share bytes. Shared values of different groups of chips
/// never share bytes, because no collective makes the readers of one value and the writers of the
/// other meet. The function is inline because placement calls it for most pairs of values.
inline bool exclude_each_other(const Program& program, const std::vector<Slot>& slots,
                               const std::vector<Lifetime>& lifetimes, ValueId a, ValueId b) {
  if (slots[a].place != slots[b].place) return false;
  if (lifetimes[a].overlaps(lifetimes[b])) return true;
  return slots[a].place == Place::shared && groups_differ(program, a, b);
}

inline constexpr std::uint64_t kSlotAlignment = 64;

/// Returns the value whose place this value has: the carry if the value is the result of a `next`,
/// otherwise the value itself.
inline ValueId placed_as(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  const bool is_next = op != kNoId && program.kind(op) == OpKind::next;
  return is_next ? program.op_operands(op)[1] : value;
}

/// Returns the number of bytes that a value takes in its region.
std::uint64_t slot_bytes(const TensorType& type);

/// Assigns offsets to temporaries and shared values, and sets the sizes of both regions in the
/// plan.
void place_values(Plan& plan);

}  // namespace weft
