#pragma once
/// Decodes WebP with libwebp.

#include <cstddef>
#include <span>

#include "data/images/picture.hpp"

namespace weft {

PixelSize webp_size(std::span<const std::byte> file);
/// Does for a WebP what decode_picture() describes. The result has 3 channels.
Picture decode_webp(std::span<const std::byte> file);
/// Returns the EXIF data, as a part of `file`; empty if there is none.
std::span<const std::byte> webp_exif(std::span<const std::byte> file);

}  // namespace weft
