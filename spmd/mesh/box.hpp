#pragma once
/// Box: a part of a tensor, and where its elements lie in memory.

#include <weft/mesh.hpp>
#include <weft/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// The first element's index and the number of elements, per dim.
struct Box {
  Shape offsets{};
  Shape dims{};

  friend bool operator==(const Box&, const Box&) = default;
};

/// A box in row-major memory. `room` is the memory's size per dim, at least the box's: a padded
/// shard has more room than elements. The box's first element is first in memory.
struct PlacedBox {
  Box box{};
  Shape room{};
};

/// The box of a whole tensor.
PlacedBox whole_box(const Shape& shape);
/// The part of a tensor on the chip at `position`, without padding; it may be empty. Its room is
/// that of the padded shard.
PlacedBox shard_box(const Shape& shape, const Sharding& sharding, const Mesh& mesh, int position);

}  // namespace weft
