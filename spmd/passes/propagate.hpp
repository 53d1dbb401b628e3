#pragma once
/// Sharding propagation: extends the shardings of annotated values to all values.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Returns one Sharding per value. Propagation starts from the shardings of inputs, outputs and
/// constraints. Closed dims are never extended, and shardings only grow. The order and the conflict
/// rules follow Shardy. The user priorities are handled one after another. Within a priority,
/// elementwise ops come first, then pass-through factors of all ops, then all factors. If factors
/// conflict, that with the larger source tensor wins.
std::vector<Sharding> propagate(const Program& program, const Mesh& mesh);

/// Shards optimizer state that would otherwise have a complete copy on each chip (ZeRO-1 within a
/// host; S. Rajbhandari et al., 2020). Returns nothing if there is no such state. The state must
/// have at least `bytes_min` bytes on a chip, and no annotation or layout yet. Exactly one
/// parameter's update must read the state. This update must work element by element, and read only
/// the parameter, such state, scalars and a gradient that chips add up. The state's leading dim is
/// sharded over the axes over which the gradient is added up, if they divide the dim. `shardings`
/// is the result of propagate(). In shard_state.cpp.
std::optional<Program> shard_optimizer_state(const Program& program, const Mesh& mesh,
                                             std::span<const Sharding> shardings,
                                             std::int64_t bytes_min);

}  // namespace weft
