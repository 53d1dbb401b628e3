#pragma once
/// Clean-up of a program: of a global one before it is partitioned, of a chip's after that.

#include "spmd/program/program.hpp"

namespace weft {

/// Removes ops that no output needs and numbers values (equal op, operands and attributes are one
/// value). With `split_constants`, each use of a constant, iota or broadcast scalar gets an op of
/// its own instead, so that one user's sharding doesn't leak into another's. Inputs and outputs
/// keep their order; unused inputs stay.
Program canonicalize(const Program& program, bool split_constants);

}  // namespace weft
