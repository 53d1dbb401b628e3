#pragma once
/// Decodes JPEG by libjpeg-turbo.

#include <cstddef>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

PixelSize jpeg_size(std::span<const std::byte> file);
/// Decodes a JPEG as decode_picture() does.
Picture decode_jpeg(std::span<const std::byte> file, bool gray, int shrink);

}  // namespace weft
