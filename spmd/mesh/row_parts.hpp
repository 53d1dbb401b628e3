#pragma once
/// RowParts: the parts of dim 0 (the rows of a batch) that the chips of one worker have.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// The parts of dim 0 that one worker's chips have. Two workers have either the same set of parts
/// or no part in common. There are `num_sets` different sets, numbered by their first parts. `set`
/// is the number of this worker's set.
struct RowParts {
  std::vector<std::int64_t> held{};  ///< the parts that this worker's chips have, ascending
  std::int64_t set = 0;
  std::int64_t num_sets = 1;

  std::int64_t count() const { return num_sets * static_cast<std::int64_t>(held.size()); }
};

/// Returns the parts that the worker with chips at `positions` has. All workers have equally many
/// chips, in the order of device ids. Throws invalid_argument, with a message that begins with
/// `what`, if two workers share some parts but not all, or have different numbers of parts.
RowParts row_parts(const Mesh& mesh, std::span<const int> positions, const Sharding& sharding,
                   std::string_view what);

/// Returns the axes along which workers have different coordinates, in the order of the mesh. If
/// the mesh has an axis "data", it is always included.
std::vector<std::string> batch_axes(const Mesh& mesh, int chips_per_worker);

}  // namespace weft
