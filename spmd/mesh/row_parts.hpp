#pragma once
/// RowParts: the parts of dim 0, the rows of a batch, that the chips of a worker hold.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/mesh.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// Any two workers hold the same parts, or none in common. `num_sets` counts the different sets of
/// parts, `set` is the number of this worker's, in the order of their first parts.
struct RowParts {
  std::vector<std::int64_t> held{};  ///< by this worker's chips, ascending
  std::int64_t set = 0;
  std::int64_t num_sets = 1;

  std::int64_t count() const { return num_sets * static_cast<std::int64_t>(held.size()); }
};

/// `positions`: of the chips of one worker; workers have equally many chips, in the order of device
/// ids. Throws invalid_argument, beginning with `what`, where two workers have parts in common but
/// not all of them, or differ in their number.
RowParts row_parts(const Mesh& mesh, std::span<const int> positions, const Sharding& sharding,
                   std::string_view what);

/// The axes along which workers lie (two of them differ in their coordinates), and "data" if the
/// mesh has it; in the mesh's order.
std::vector<std::string> batch_axes(const Mesh& mesh, int chips_per_worker);

}  // namespace weft
