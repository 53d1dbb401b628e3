#pragma once
/// Simplifies a program: a global program before partitioning, and a chip's program after it.

#include "spmd/program/program.hpp"

namespace weft {

/// Removes ops that no output needs, and merges ops of the same kind with the same operands and
/// attributes. But with `split_constants`, each use of a constant, iota or broadcast scalar gets an
/// op of its own, so that the sharding of one use doesn't affect another. Inputs and outputs keep
/// their order, and unused inputs stay.
///
/// In the result, a loop begins with its `loop` op and its carries, and ends with its nexts. Ops
/// that compute the same value in each iteration are moved before the loop, unless they are in a
/// branch.
Program canonicalize(const Program& program, bool split_constants);

}  // namespace weft
