#include "transport/image/picture.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <weft/error.hpp>
#include <weft/image_files.hpp>

#include "transport/image/jpeg.hpp"
#include "transport/image/png.hpp"

namespace weft {
namespace {

struct Magic {
  std::size_t at;
  std::string_view bytes;
  std::string_view name;
};
constexpr std::array<Magic, 6> kOthers{{{0, "GIF8", "GIF"},
                                        {8, "WEBP", "WebP"},
                                        {0, "BM", "BMP"},
                                        {0, "II*", "TIFF"},
                                        {0, "MM", "TIFF"},
                                        {4, "ftyp", "HEIF or AVIF"}}};

}  // namespace

PictureFormat picture_format(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("\xff\xd8\xff")) return PictureFormat::jpeg;
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return PictureFormat::png;
  for (const Magic& other : kOthers) {
    if (text.size() < other.at || !text.substr(other.at).starts_with(other.bytes)) continue;
    fail(Errc::corrupt, "is {}: expected JPEG or PNG; convert it", other.name);
  }
  fail(Errc::corrupt, "{} bytes that are neither JPEG nor PNG", file.size());
}

PixelSize picture_size(std::span<const std::byte> file) {
  return picture_format(file) == PictureFormat::jpeg ? jpeg_size(file) : png_size(file);
}

Picture decode_picture(std::span<const std::byte> file, bool gray, int shrink) {
  if (picture_format(file) == PictureFormat::jpeg) return decode_jpeg(file, gray, shrink);
  Picture picture = decode_png(file);
  if (gray && picture.channels == 3) make_gray(picture);
  return picture;
}

void check_picture_size(std::int64_t width, std::int64_t height, std::size_t file_bytes,
                        std::int64_t pixels_per_byte) {
  if (width < 1 || height < 1) {
    fail(Errc::corrupt, "a picture of {} by {} pixels", width, height);
  }
  // Sides have 32 bits at most.
  if (width > kImagePixelsMax / height) {
    fail(Errc::corrupt, "a picture of {} by {} pixels; at most {} are possible", width, height,
         kImagePixelsMax);
  }
  if (width * height / pixels_per_byte > static_cast<std::int64_t>(file_bytes)) {
    fail(Errc::corrupt, "a picture of {} by {} pixels in {} bytes; was the file cut off?", width,
         height, file_bytes);
  }
}

void make_gray(Picture& picture) {
  const std::int64_t count = picture.size.width * picture.size.height;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* const rgb = &picture.bytes[static_cast<std::size_t>(3 * i)];
    // In 2^-16: 0.299, 0.587, 0.114.
    const unsigned luma = rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U;
    picture.bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(luma >> 16U);
  }
  picture.channels = 1;
}

}  // namespace weft
