#pragma once
/// Replaces a composite by its decomposition if a dim is sharded that the composite's kernel needs
/// undivided.

#include <optional>
#include <span>
#include <vector>

#include "spmd/mesh/sharding.hpp"
#include "spmd/program/program.hpp"

namespace weft {

/// Replaces every composite by its decomposition if propagation has sharded an operand along a dim
/// that the composite's rule can't shard. The chips then exchange sums over the rows instead of
/// gathering the rows. Returns nullopt if there is no such composite. `shardings` has one Sharding
/// per value of the global program. The result must be canonicalized and propagated again.
std::optional<Program> expand(const Program& program, std::span<const Sharding> shardings);

/// Replaces each composite op for which `expanded[op]` is true by its decomposition.
Program expand_ops(const Program& program, const std::vector<bool>& expanded);

}  // namespace weft
