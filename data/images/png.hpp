#pragma once
/// Decodes PNG with libpng.

#include <cstddef>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

PixelSize png_size(std::span<const std::byte> file);
/// Does for a PNG what decode_picture() describes. The result has 1 channel if the file is gray.
Picture decode_png(std::span<const std::byte> file, bool keeps_16_bits);
/// Returns the EXIF data, as a part of `file`; empty if there is none.
std::span<const std::byte> png_exif(std::span<const std::byte> file);

}  // namespace weft
