#pragma once
/// Partitioning: makes the program of one chip from the global program and a sharding per value.
/// Then splits collectives whose chips meet both within hosts and between them.

#include <cstdint>
#include <optional>
#include <span>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Assigns atoms to the factors of each op, reshards operands whose layout doesn't fit, reduces
/// partial results, and lowers types to local shapes. The inputs and outputs of the result have
/// closed shardings. An output that updates an input has that input's sharding. All chips get the
/// same program, in which only iota, all_slice and collectives depend on the chip's position.
Program partition(const Program& program, const Mesh& mesh, std::span<const Sharding> shardings);

/// Returns the type of one chip's shard of a tensor of type `global`.
TensorType chip_type(const TensorType& global, const Sharding& sharding, const Mesh& mesh);

// The following functions are in tiers.cpp.

/// In an all_reduce of at most this many bytes, each chip sends the complete value to other hosts
/// instead of a part. This takes two collectives instead of three.
inline constexpr std::int64_t kWholeBetweenHostsMax = 16 * 1024;

/// Replaces each collective over atoms of both tiers by collectives over atoms of one tier, with
/// the same result. Returns nothing if there is no such collective.
///
///   all_reduce       up to kWholeBetweenHostsMax: all_reduce within hosts, then between them;
///                    else: reduce_scatter within hosts, all_reduce between them, all_gather within
///                    hosts, along the first dim that divides evenly, or along a flat view of the
///                    value that is padded with zeros
///   all_gather       between hosts, then within hosts
///   reduce_scatter   within hosts, then between hosts
///   all_to_all       one after another for each run of atoms of one tier
///
/// A sum adds up the chips of each host in the order of the group, rounds, and then adds up the
/// hosts in ascending order. Permutes aren't split, because each chip receives from only one other
/// chip.
std::optional<Program> lower_tiers(const Program& chip_program, const Mesh& mesh);

}  // namespace weft
