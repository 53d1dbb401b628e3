#pragma once
/// Structural checks of a Program.

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Throws corrupt, naming the op and what is wrong, unless: array sizes agree, ids are in range and
/// defined before use, operand and attribute counts fit the kind, every result type is what
/// inference gives, constants lie in the pool, shardings name atoms of the mesh (none twice in a
/// value), an output that updates an input has its type and, in a chip's program, its sharding,
/// loops are as verify_loops() says, and functions of shard_map as check_manual() does.
void verify(const Program& program, const Mesh& mesh);
/// Ranges of loops nest; each carry has one `next`; items and stacks have as many parts as the loop
/// has iterations; what is made in a loop is read there only, but for the results of `stack` and
/// `next`. The rest of the program must be verified already.
void verify_loops(const Program& program);

}  // namespace weft
