#pragma once
/// Puts a chip's program in an order in which collectives between hosts have time (decision 0113).

#include <optional>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// Returns the program in an order that leaves time between each collective between hosts and its
/// first reader; nothing if there is no op to move. A collective stands directly behind the op that
/// computes its operand, with the cheap ops between them, such as a reduce_scatter within the host.
/// An op that depends on such a collective moves to the end if it and all ops that depend on it are
/// cheap: at most one flop per element that they read or write. So the updates of an optimizer
/// move, and layers don't. Elementwise ops that only moved ops read move with them, because they
/// run in one loop. Moved ops have the order of the collectives for which they wait.
std::optional<Program> reorder_for_overlap(const Program& chip_program, const Mesh& mesh,
                                           const Target& target);

/// Returns the first op of each group of moved ops that waits for another collective than the
/// group before it. A loop that went on there would wait for both collectives.
std::vector<OpId> delayed_groups(const Program& chip_program, const Mesh& mesh,
                                 const Target& target);

}  // namespace weft
