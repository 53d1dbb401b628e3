#pragma once
/// Decodes picture files: the common interface of JPEG, PNG and WebP.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "data/items/resample.hpp"

namespace weft {

/// Decoded pixels. The channels of a pixel are adjacent.
struct Picture {
  PixelSize size{};
  int channels = 0;                          ///< 1 or 3
  std::unique_ptr<std::uint8_t[]> bytes{};   ///< 0 to 255; null if there are `words`
  std::unique_ptr<std::uint16_t[]> words{};  ///< 0 to 65535

  Pixels<std::uint8_t> pixels() const { return {bytes.get(), size, channels}; }
  Pixels<std::uint16_t> deep_pixels() const { return {words.get(), size, channels}; }
};

enum class PictureFormat : std::uint8_t { jpeg, png, webp };
/// Returns a file's format, recognized by its first bytes. Throws corrupt for any other format,
/// with its name if it is known.
PictureFormat picture_format(std::span<const std::byte> file);

/// Returns the size in the file's header. Throws like decode_picture().
PixelSize picture_size(std::span<const std::byte> file);

/// Decodes a file. The sides of a JPEG are divided by `shrink` (1, 2, 4 or 8) and rounded up; other
/// formats ignore `shrink`. The result has 1 channel if the file is gray or `gray` is true, else 3.
/// A PNG of 16 bits gives `words` if `keeps_16_bits`; otherwise its values are rounded to 8 bits.
/// EXIF's orientation is ignored. Throws corrupt if the picture is damaged, cut off, larger than
/// kImagePixelsMax, or larger than possible for the size of the file. Throws version for a form
/// that the decoders don't support.
Picture decode_picture(std::span<const std::byte> file, bool gray, int shrink,
                       bool keeps_16_bits = false);

/// Throws corrupt if the picture has no pixels, or more than `pixels_per_byte` for each byte of the
/// file, so that a small file can't make weft allocate much memory.
void check_picture_size(std::int64_t width, std::int64_t height, std::size_t file_bytes,
                        std::int64_t pixels_per_byte);

/// Replaces red, green and blue by luma (ITU-R BT.601), if there are three channels. The gray
/// pixels are at the beginning of the same memory.
void make_gray(Picture& picture);

}  // namespace weft
