#pragma once
/// Sharding propagation: from the annotated values to all values.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// One Sharding per value. Starts from the shardings of inputs, outputs and constraints; closed
/// dims are never extended; shardings only grow. Order and conflict rules follow Shardy: user
/// priorities outermost, then elementwise, pass-through and all factors; in a conflict the factor
/// with the larger source tensor wins.
std::vector<Sharding> propagate(const Program& program, const Mesh& mesh);

/// ZeRO-1 within a host (S. Rajbhandari et al., 2020): the program with such state of optimizers
/// sharded that each chip would have whole, or nothing if there is no such state. It has at least
/// `bytes_min` bytes on a chip, nobody has marked it, and it lies nowhere yet. A parameter's update
/// reads it, and element by element that reads nothing but the parameter, such state, scalars and a
/// gradient that chips add up. Its leading dim gets the axes of that sum, if they divide it; all
/// other state stays as it is. `shardings`: what propagate() gave. In shard_state.cpp.
std::optional<Program> shard_optimizer_state(const Program& program, const Mesh& mesh,
                                             std::span<const Sharding> shardings,
                                             std::int64_t bytes_min);

}  // namespace weft
