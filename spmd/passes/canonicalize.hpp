#pragma once
/// Cleans up a program: a global one before partitioning, a chip's program after it.

#include "spmd/program/program.hpp"

namespace weft {

/// Removes ops that no output needs, and merges values of equal op, operands and attributes. With
/// `split_constants`, each use of a constant, iota or broadcast scalar gets an op of its own
/// instead, so that one user's sharding doesn't leak into another's. Inputs and outputs keep their
/// order; unused inputs stay.
///
/// Of a loop, the op and the carries come first, and its nexts last. Ops that compute the same in
/// each iteration stand before it, but for those of a branch in it.
Program canonicalize(const Program& program, bool split_constants);

}  // namespace weft
