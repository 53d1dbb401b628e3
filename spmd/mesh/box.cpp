#include "spmd/mesh/box.hpp"

#include <algorithm>

namespace weft {

PlacedBox whole_box(const Shape& shape) {
  PlacedBox whole{.box = {shape, shape}, .room = shape};
  for (int d = 0; d < shape.size(); ++d) whole.box.offsets[d] = 0;
  return whole;
}

PlacedBox shard_box(const Shape& shape, const Sharding& sharding, const Mesh& mesh, int position) {
  const auto offsets = sharding.offsets(mesh, position, shape);
  const auto sizes = sharding.local_shape(mesh, shape);
  PlacedBox placed = whole_box(shape);
  for (int d = 0; d < shape.size(); ++d) {
    const auto dim = static_cast<std::size_t>(d);
    placed.room[d] = sizes[dim];
    placed.box.offsets[d] = std::min(offsets[dim], shape[d]);
    placed.box.dims[d] = std::min(sizes[dim], shape[d] - placed.box.offsets[d]);
  }
  return placed;
}

}  // namespace weft
