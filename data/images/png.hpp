#pragma once
/// PNG, by libpng.

#include <cstddef>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

PixelSize png_size(std::span<const std::byte> file);
/// See decode_picture(); 1 channel if the file is gray.
Picture decode_png(std::span<const std::byte> file, bool keeps_16_bits);
/// EXIF's data, which lie in `file`; none if it has none.
std::span<const std::byte> png_exif(std::span<const std::byte> file);

}  // namespace weft
