#pragma once
/// Pictures in files, decoded: what JPEG, PNG and WebP have in common.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "data/items/resample.hpp"

namespace weft {

/// Decoded pixels, with channels one behind the other.
struct Picture {
  PixelSize size{};
  int channels = 0;                          ///< 1 or 3
  std::unique_ptr<std::uint8_t[]> bytes{};   ///< 0 to 255; null if there are `words`
  std::unique_ptr<std::uint16_t[]> words{};  ///< 0 to 65535

  Pixels<std::uint8_t> pixels() const { return {bytes.get(), size, channels}; }
  Pixels<std::uint16_t> deep_pixels() const { return {words.get(), size, channels}; }
};

/// JPEG, PNG or WebP, by the first bytes. Throws corrupt for others, naming what they are if that
/// is known.
enum class PictureFormat : std::uint8_t { jpeg, png, webp };
PictureFormat picture_format(std::span<const std::byte> file);

/// The size that the file's header gives. Throws as decode_picture().
PixelSize picture_size(std::span<const std::byte> file);

/// `shrink`: 1, 2, 4 or 8; a JPEG has its sizes divided by it, rounded up, and others don't.
/// Channels are the file's or, if it is gray or to be gray, 1. A PNG of 16 bits has words if
/// `keeps_16_bits`; else they are rounded to 8. EXIF's orientation isn't regarded. Throws corrupt
/// for a picture that is damaged, cut off, or larger than kImagePixelsMax or than a file of these
/// bytes can be; version for one that the decoders don't know.
Picture decode_picture(std::span<const std::byte> file, bool gray, int shrink,
                       bool keeps_16_bits = false);

/// Throws corrupt unless the picture has pixels, and as few as `pixels_per_byte` allows. A file of
/// few bytes can't ask for much memory.
void check_picture_size(std::int64_t width, std::int64_t height, std::size_t file_bytes,
                        std::int64_t pixels_per_byte);

/// Luma (ITU-R BT.601) of red, green, blue, in place of the first pixels, if there are three
/// channels.
void make_gray(Picture& picture);

}  // namespace weft
