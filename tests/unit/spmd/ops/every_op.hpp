#pragma once
/// A program that has every op kind, every dtype, every input kind and every part of a sharding.

#include "spmd/ops/builder.hpp"

namespace weft::testing {

/// Returns every kind of op.
std::vector<OpKind> all_op_kinds();

/// Returns a chip's program on `mesh`, which has the axes "data" (4) and "model" (2). It passes
/// verify.
Program every_op(const Mesh& mesh);

}  // namespace weft::testing
