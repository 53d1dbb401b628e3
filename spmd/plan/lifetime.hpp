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
/// values in the range of bytes of a bucket live as long as the range. Operands and results of a
/// collective with a wait live until the wait. A value that a fused loop
/// (fuse.hpp) reads or makes lives through the whole loop. The same holds for values that a loop of
/// the program (control/loops.hpp) reads from outside, carries or stacks.
struct Lifetime {
  OpId first = 0;
  OpId last = 0;

  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// Returns one lifetime per value of a program that runs in these steps. The lifetime of a shared
/// value begins with the op that writes a part of it in place. It ends with a collective in which
/// all chips that share the value meet after its last reader, or with the program, because other
/// chips may read the value until then. The operand of a reduce_scatter also lives that long if
/// loops add it themselves (shared.hpp).
std::vector<Lifetime> lifetimes_of(const Program& program, std::span<const PlanStep> steps,
                                   const std::vector<Slot>& slots);

/// Returns whether two values must not share bytes. Shared values of different groups must not,
/// because a chip meets the readers of one value but not those of the other. It is inline because
/// placement asks this of most pairs.
inline bool exclude_each_other(const Program& program, const std::vector<Slot>& slots,
                               const std::vector<Lifetime>& lifetimes, ValueId a, ValueId b) {
  if (slots[a].place != slots[b].place) return false;
  if (lifetimes[a].overlaps(lifetimes[b])) return true;
  return slots[a].place == Place::shared && groups_differ(program, a, b);
}

inline constexpr std::uint64_t kSlotAlignment = 64;

/// Returns the value whose place this value has: for the result of a `next` its carry, otherwise
/// the value itself.
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
