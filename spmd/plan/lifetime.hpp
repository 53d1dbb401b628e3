#pragma once
/// Lifetimes: during which ops the values of a plan need their memory. place_values() gives it.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {

/// First and last op, both included, between which a value's bytes must be its own: from the op
/// that makes the value (op 0 for an input) to the last op that reads it. All values in a bucket's
/// range of bytes live as long as the range. A value that a loop reads or makes (fuse.hpp) lives
/// through the whole loop, as does what a loop of the program (control/loops.hpp) reads from
/// outside, carries or stacks.
struct Lifetime {
  OpId first = 0;
  OpId last = 0;

  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// One per value of a program that runs in these steps. Chips of a shared value's group may read it
/// until they have met in a collective after the value's last reader. Its lifetime ends with that
/// collective, or with the program; it begins with the op that writes a part of it in place. The
/// same holds for the operand of a reduce_scatter whose result loops add for themselves.
std::vector<Lifetime> lifetimes_of(const Program& program, std::span<const PlanStep> steps,
                                   const std::vector<Slot>& slots);

/// Whether two values must not share bytes. Shared values of different groups must not, since a
/// chip meets the readers of one value but not those of the other. Inline, as placement asks this
/// of most pairs.
inline bool exclude_each_other(const Program& program, const std::vector<Slot>& slots,
                               const std::vector<Lifetime>& lifetimes, ValueId a, ValueId b) {
  if (slots[a].place != slots[b].place) return false;
  if (lifetimes[a].overlaps(lifetimes[b])) return true;
  return slots[a].place == Place::shared && groups_differ(program, a, b);
}

inline constexpr std::uint64_t kSlotAlignment = 64;

/// The value whose place this one has: of the result of a `next`, its carry; else the value itself.
inline ValueId placed_as(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  const bool is_next = op != kNoId && program.kind(op) == OpKind::next;
  return is_next ? program.op_operands(op)[1] : value;
}

/// Bytes that a value takes in its region.
std::uint64_t slot_bytes(const TensorType& type);

/// Gives temporaries and shared values their offsets, and the plan the sizes of both regions.
void place_values(Plan& plan);

}  // namespace weft
