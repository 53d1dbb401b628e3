#pragma once
/// Decodes PNG by libpng.

#include <cstddef>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

PixelSize png_size(std::span<const std::byte> file);
/// Decodes a PNG as decode_picture() does. A gray file has 1 channel.
Picture decode_png(std::span<const std::byte> file, bool keeps_16_bits);
/// Returns the EXIF data, as a part of `file`; empty if there are none.
std::span<const std::byte> png_exif(std::span<const std::byte> file);

}  // namespace weft
