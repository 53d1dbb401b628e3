#pragma once
/// WebP, by libwebp.

#include <cstddef>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

PixelSize webp_size(std::span<const std::byte> file);
/// See decode_picture(); 3 channels.
Picture decode_webp(std::span<const std::byte> file);
/// EXIF's data, which lie in `file`; none if it has none.
std::span<const std::byte> webp_exif(std::span<const std::byte> file);

}  // namespace weft
