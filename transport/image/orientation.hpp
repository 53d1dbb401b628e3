#pragma once
/// How a picture is to be turned: EXIF's tag Orientation.

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/image/picture.hpp"

namespace weft {

/// EXIF's numbers: what is to be done with the stored picture.
enum class Orientation : std::uint8_t {
  upright = 1,
  mirror,  ///< left becomes right
  rotate_180,
  flip,          ///< top becomes bottom
  transpose,     ///< mirrored at the diagonal from the upper left
  rotate_right,  ///< by 90 degrees
  transverse,    ///< mirrored at the other diagonal
  rotate_left,
};

/// Of a JPEG, a PNG or a WebP; upright if the file doesn't say, or its EXIF data are damaged.
Orientation picture_orientation(std::span<const std::byte> file);

/// The size of a picture of this size when it is turned.
PixelSize turned(PixelSize size, Orientation orientation);
void turn(Picture& picture, Orientation orientation);

}  // namespace weft
