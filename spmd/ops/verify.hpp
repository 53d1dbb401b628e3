#pragma once
/// Checks the structure of a Program.

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Throws corrupt, with the op and the fault, unless all of these hold: array sizes agree; ids are
/// in range and defined before use; operand and attribute counts fit the kind; every result type
/// equals the inferred type; constants are in the pool; shardings name atoms of the mesh, none
/// twice in a value; an output that updates an input has its type and, in a chip's program, its
/// sharding; loops pass verify_loops(); functions of shard_map pass check_manual().
void verify(const Program& program, const Mesh& mesh);
/// Throws corrupt unless all of these hold: the ranges of loops nest; each carry has one `next`;
/// items and stacks have as many parts as the loop has iterations; values made in a loop are read
/// only there, except the results of `stack` and `next`. The rest of the program must have been
/// verified.
void verify_loops(const Program& program);

}  // namespace weft
