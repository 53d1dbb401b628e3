#pragma once
/// Structural checks of a Program.

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Throws corrupt, naming the op and what is wrong, unless: array sizes agree, ids are in range and
/// defined before use, operand and attribute counts fit the kind, every result type is what
/// inference gives, constants lie in the pool, shardings name atoms of the mesh (none twice in a
/// value), and an output that updates an input has its type and, in a chip's program, its sharding.
void verify(const Program& program, const Mesh& mesh);

}  // namespace weft
