#pragma once
/// Sharding propagation: from the annotated values to all values.

#include <vector>

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// One Sharding per value. Starts from the shardings of inputs, outputs and constraints; closed
/// dims are never extended; shardings only grow. Order and conflict rules follow Shardy: user
/// priorities outermost, then elementwise, pass-through and all factors; in a conflict the factor
/// with the larger source tensor wins.
std::vector<Sharding> propagate(const Program& program, const Mesh& mesh);

}  // namespace weft
