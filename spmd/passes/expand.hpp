#pragma once
/// Composites that a sharding cuts where their kernel needs the whole.

#include <optional>
#include <span>
#include <vector>

#include "spmd/mesh/sharding.hpp"
#include "spmd/program/program.hpp"

namespace weft {

/// The program with the decomposition in the place of every composite of which propagation has
/// sharded an operand along a dim that the composite's rule can't cut: of a row that is cut only
/// sums are exchanged then, and the row isn't gathered. nullopt if there is none. `shardings`: one
/// per value of the program, a global one. The result is to be canonicalized and propagated again.
std::optional<Program> expand(const Program& program, std::span<const Sharding> shardings);

/// The program with the decomposition in the place of every composite for which `expanded`, by op,
/// is true.
Program expand_ops(const Program& program, const std::vector<bool>& expanded);

}  // namespace weft
