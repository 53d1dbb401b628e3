#pragma once
/// Overlap: collectives between hosts that run at the same time as the plan's next steps.
///
/// Such a collective begins at its own step and ends at a `wait` step, which precedes the first
/// step that reads a result of the collective. In between, its operands and results keep their
/// memory. The waits have the order of their collectives, so all chips begin and end the
/// collectives in one order. Neither such a collective nor its wait is in a loop or a branch of the
/// program.

#include <cstddef>
#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns whether the mesh has several hosts and chips of this target may run collectives between
/// hosts while they run other steps.
bool may_overlap(const Mesh& mesh, const Target& target);
/// Returns whether the op is a collective of chips on several hosts.
bool is_between_hosts(const Program& program, OpId op, const Mesh& mesh);

/// Inserts the waits of collectives between hosts. A collective gets a wait if the steps up to its
/// first reader have enough work (Target::overlap_work_min). A permute never gets one. Before a
/// collective begins for which Target::overlap_bytes_max leaves no room, the oldest ones end.
void place_waits(Plan& plan, const Mesh& mesh, const Target& target);

/// A collective with a wait: the indices of both steps.
struct Flight {
  std::size_t start = 0;
  std::size_t wait = 0;
};
/// Returns the collectives that have waits, in the order of the waits. Leaves out each wait that no
/// collective of its own precedes.
std::vector<Flight> flights(std::span<const PlanStep> steps);

/// Throws corrupt, with the step, unless each wait belongs to an earlier collective between hosts,
/// the waits have the order of their collectives, and no step reads a result before the wait.
void verify_waits(const Plan& plan, const Mesh& mesh);

}  // namespace weft
