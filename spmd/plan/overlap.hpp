#pragma once
/// Overlap: collectives between hosts that go on while the chip runs the plan's next steps.
///
/// Such a collective begins at its step and ends at a step `wait`, which stands before the first
/// step that reads a result of it. In between, its operands and results keep their memory. The
/// waits have the order of the collectives, so all chips begin and end them in one order. Loops and
/// branches of the program contain neither.

#include <cstddef>
#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns whether chips of this target may run collectives between hosts beside other steps, and
/// the mesh has several hosts.
bool may_overlap(const Mesh& mesh, const Target& target);
/// Returns whether the op is a collective of chips on several hosts.
bool is_between_hosts(const Program& program, OpId op, const Mesh& mesh);

/// Inserts the waits of collectives between hosts. A collective gets a wait if the steps up to its
/// first reader have enough work (Target::overlap_work_min). A permute never gets one.
void place_waits(Plan& plan, const Mesh& mesh, const Target& target);

/// A collective with a wait: the indices of both steps.
struct Flight {
  std::size_t start = 0;
  std::size_t wait = 0;
};
/// Returns the collectives that have waits, in the order of the waits. Leaves out waits whose
/// collective isn't before them.
std::vector<Flight> flights(std::span<const PlanStep> steps);

/// Throws corrupt, with the step, unless each wait is that of an earlier collective between hosts,
/// all have one order, and no step reads a result before the wait.
void verify_waits(const Plan& plan, const Mesh& mesh);

}  // namespace weft
