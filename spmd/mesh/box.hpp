#pragma once
/// Box: a part of a tensor. PlacedBox: a box and the memory that holds its elements.

#include <weft/sharding/mesh.hpp>
#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// The index of the first element and the number of elements, per dim.
struct Box {
  Shape offsets{};
  Shape dims{};

  friend bool operator==(const Box&, const Box&) = default;
};

/// A box in row-major memory. `room` is the size of the memory per dim. It is at least the size of
/// the box: a padded shard has more room than elements. The memory begins with the first element of
/// the box.
struct PlacedBox {
  Box box{};
  Shape room{};
};

/// Returns the box of a whole tensor.
PlacedBox whole_box(const Shape& shape);
/// Returns the part of a tensor on the chip at `position`, without padding; it may be empty. Its
/// room is the size of the padded shard.
PlacedBox shard_box(const Shape& shape, const Sharding& sharding, const Mesh& mesh, int position);

}  // namespace weft
