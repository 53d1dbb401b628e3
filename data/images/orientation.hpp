#pragma once
/// Reads EXIF's Orientation tag, and turns pictures accordingly.

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

/// The numbers of EXIF's Orientation tag. Each name says how to change the stored picture to make
/// it upright.
enum class Orientation : std::uint8_t {
  upright = 1,
  mirror,  ///< exchanges left and right
  rotate_180,
  flip,          ///< exchanges top and bottom
  transpose,     ///< mirrored at the diagonal from the upper left corner
  rotate_right,  ///< by 90 degrees
  transverse,    ///< mirrored at the other diagonal
  rotate_left,
};

/// Reads the Orientation tag of a JPEG, a PNG or a WebP. Returns `upright` if the file has no tag,
/// or if its EXIF data is damaged.
Orientation picture_orientation(std::span<const std::byte> file);

/// Returns the size of a picture after it is turned.
PixelSize turned(PixelSize size, Orientation orientation);
void turn(Picture& picture, Orientation orientation);

}  // namespace weft
