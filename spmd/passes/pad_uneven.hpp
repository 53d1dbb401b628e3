#pragma once
/// Dims that the mesh doesn't divide.

#include <optional>

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// The program with every dim that a marked sharding cuts unevenly rounded up to a multiple of its
/// parts, and so are the dims of other values that correspond to it, as far as factors reach; all
/// passes after this one see even shards only. What lies in the padding is unspecified, so it is
/// replaced by the neutral element before a reduction. Inputs and outputs have the shape that their
/// shards have together (Sharding::local_shape). nullopt if every dim is divided.
std::optional<Program> pad_uneven(const Program& program, const Mesh& mesh);

}  // namespace weft
