#pragma once
/// Clean-up of a traced program before it is partitioned.

#include <weft/spmd/program/program.hpp>

namespace weft {

/// Removes ops that no output needs, numbers values (equal op, operands and attributes are one value;
/// constants and iotas excepted when `split_constants`), and, when `split_constants`, gives each use
/// of a constant, iota or broadcast scalar an op of its own, so that one user's sharding doesn't leak
/// into another's. Inputs and outputs keep their order; unused inputs stay.
Program canonicalize(const Program& program, bool split_constants);

}  // namespace weft
