#pragma once
/// Decodes JPEG with libjpeg-turbo.

#include <cstddef>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

PixelSize jpeg_size(std::span<const std::byte> file);
/// Does for a JPEG what decode_picture() describes.
Picture decode_jpeg(std::span<const std::byte> file, bool gray, int shrink);

}  // namespace weft
