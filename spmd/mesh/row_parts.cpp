#include "spmd/mesh/row_parts.hpp"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

using Parts = std::set<std::int64_t>;

Parts parts_of(const Mesh& mesh, int worker, int chips, const Sharding& sharding) {
  Parts parts;
  for (int chip = worker * chips; chip < (worker + 1) * chips; ++chip) {
    parts.insert(mesh.index_in(mesh.position_of(chip), sharding.dims[0]));
  }
  return parts;
}

}  // namespace

RowParts row_parts(const Mesh& mesh, std::span<const int> positions, const Sharding& sharding,
                   std::string_view what) {
  const int chips = static_cast<int>(positions.size());
  const int worker = mesh.device_at(positions.front()) / chips;
  const Parts own = parts_of(mesh, worker, chips, sharding);
  std::set<Parts> sets;  // all different sets, sorted by first part
  for (int other = 0; other < mesh.size() / chips; ++other) {
    const Parts theirs = parts_of(mesh, other, chips, sharding);
    const bool overlap = std::ranges::any_of(theirs, [&](auto part) { return own.contains(part); });
    if (theirs.size() != own.size() || (overlap && theirs != own)) {
      fail(Errc::invalid_argument,
           "{}: dim 0 has {} parts, and worker {} holds {{{}}} but worker {} holds {{{}}} on mesh "
           "{}: workers must hold equally many parts, and either the same parts or no common part; "
           "shard dim 0 over axes that consist of whole workers",
           what, mesh.count(sharding.dims[0]), worker, fmt::join(own, ","), other,
           fmt::join(theirs, ","), mesh.to_string());
    }
    sets.insert(theirs);
  }
  return {.held = {own.begin(), own.end()},
          .set = std::distance(sets.begin(), sets.find(own)),
          .num_sets = static_cast<std::int64_t>(sets.size())};
}

std::vector<std::string> batch_axes(const Mesh& mesh, int chips_per_worker) {
  std::vector<std::string> axes;
  for (std::size_t axis = 0; axis < mesh.shape().size(); ++axis) {
    std::set<std::set<std::int64_t>> coords;
    for (int chip = 0; chip < mesh.size();) {
      std::set<std::int64_t> of_worker;
      for (const int end = chip + chips_per_worker; chip < end; ++chip) {
        of_worker.insert(mesh.coords(mesh.position_of(chip))[axis]);
      }
      coords.insert(of_worker);
    }
    const std::string& name = mesh.axis_names()[axis];
    if (coords.size() > 1 || name == "data") axes.push_back(name);
  }
  return axes;
}

}  // namespace weft
