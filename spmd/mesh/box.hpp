#pragma once
/// Box: a box-shaped part of a tensor. PlacedBox: a box with the size of the memory that has its
/// elements.

#include <weft/sharding/mesh.hpp>
#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// A part of a tensor: for each dim, the index of the first element and the number of elements.
struct Box {
  Shape offsets{};
  Shape dims{};

  friend bool operator==(const Box&, const Box&) = default;
};

/// A box in row-major memory, which begins with the first element of the box. `room` is the size of
/// the memory along each dim. It is at least the size of the box; a padded shard has more room than
/// elements.
struct PlacedBox {
  Box box{};
  Shape room{};
};

/// Returns the box of a whole tensor.
PlacedBox whole_box(const Shape& shape);
/// Returns the part of a tensor that is on the chip at `position`. The box has no padding and may
/// be empty; `room` is the size of the padded shard.
PlacedBox shard_box(const Shape& shape, const Sharding& sharding, const Mesh& mesh, int position);

}  // namespace weft
