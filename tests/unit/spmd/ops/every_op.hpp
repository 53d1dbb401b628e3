#pragma once
/// Makes a program with every kind of op, every dtype, every kind of input and every part of a
/// sharding.

#include "spmd/ops/builder.hpp"

namespace weft::testing {

/// Returns every kind of op.
std::vector<OpKind> all_op_kinds();

/// Returns a chip's program that verify() accepts. `mesh` has the axes "data" (4) and "model" (2).
Program every_op(const Mesh& mesh);

}  // namespace weft::testing
