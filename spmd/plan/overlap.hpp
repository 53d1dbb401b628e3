#pragma once
/// Overlap: collectives between hosts that go on while the chip runs the plan's next steps.
///
/// Such a collective begins at its step and ends at a step `wait`, which stands before the first
/// step that reads a result of it. In between, its operands and results keep their memory. The
/// waits have the order of the collectives, so all chips begin and end them in one order. Loops and
/// branches of the program contain neither.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns the program in an order that gives collectives between hosts time; nothing if there is
/// nothing to move. A collective, and the ops that only bring its operand from an op that works,
/// such as a reduce_scatter within the host, stand right behind that op. Ops that read its result
/// are delayed. Delayed ops stand at the end, in the order of the collectives for which they wait.
/// An op is delayed if it depends on such a collective, and neither it nor any op that depends on
/// it works much. So the updates of an optimizer are delayed, but no layer is. Elementwise ops that
/// only delayed ops read are delayed with them, since they run in one loop.
std::optional<Program> reorder_for_overlap(const Program& chip_program, const Mesh& mesh,
                                           const Target& target);
/// Returns the first op of each group of delayed ops that waits for another collective than the
/// group before it. A loop that went on there would wait for both collectives.
std::vector<OpId> delayed_groups(const Program& chip_program, const Mesh& mesh,
                                 const Target& target);

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
