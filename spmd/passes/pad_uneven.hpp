#pragma once
/// Pads the dims that their shardings don't divide evenly.

#include <optional>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Rounds up every dim that the sharding of an input, output or constraint divides unevenly, to a
/// multiple of its number of parts. Also rounds up dims of other values that have the same factors.
/// All later passes see only even shards. The content of the padding is unspecified, so it is
/// replaced by the neutral element before a reduction. Inputs and outputs get the shape that all
/// their shards, each of Sharding::local_shape, form together. Returns nullopt if every dim is
/// divided evenly.
std::optional<Program> pad_uneven(const Program& program, const Mesh& mesh);

}  // namespace weft
