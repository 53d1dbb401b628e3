#pragma once
/// Orders a chip's program so that other ops run during collectives between hosts (decision 0113).

#include <optional>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// Returns the program in an order that leaves time between each collective between hosts and its
/// first reader; nothing if no op needs to move. A collective runs as soon as its operand is
/// computed, and so do cheap ops that the operand needs, such as a reduce_scatter within the host.
/// An op that depends on such a collective moves to the end if the op and all ops that depend on it
/// are cheap: at most one flop per element that they read or write. So the updates of an optimizer
/// move, and layers don't. Elementwise ops whose results only moved ops read move too, because they
/// run in one loop with these ops. Moved ops have the order of the collectives for which they wait.
std::optional<Program> reorder_for_overlap(const Program& chip_program, const Mesh& mesh,
                                           const Target& target);

/// Groups the moved ops by the collective for which they wait, and returns the first op of each
/// group. Loops must not cross from one group to the next, or they would wait for both collectives.
std::vector<OpId> delayed_groups(const Program& chip_program, const Mesh& mesh,
                                 const Target& target);

}  // namespace weft
