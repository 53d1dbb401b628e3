#include "data/images/picture.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include <weft/data/image_files.hpp>
#include <weft/tensor/error.hpp>

#include "data/images/jpeg.hpp"
#include "data/images/png.hpp"
#include "data/images/webp.hpp"

namespace weft {
namespace {

struct Magic {
  std::size_t at;
  std::string_view bytes;
  std::string_view name;
};
constexpr std::array<Magic, 5> kOthers{{{0, "GIF8", "GIF"},
                                        {0, "BM", "BMP"},
                                        {0, "II*", "TIFF"},
                                        {0, "MM", "TIFF"},
                                        {4, "ftyp", "HEIF or AVIF"}}};

}  // namespace

PictureFormat picture_format(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("\xff\xd8\xff")) return PictureFormat::jpeg;
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return PictureFormat::png;
  constexpr std::size_t kWebpAt = 8;
  if (text.starts_with("RIFF") && text.size() > kWebpAt &&
      text.substr(kWebpAt).starts_with("WEBP")) {
    return PictureFormat::webp;
  }
  for (const Magic& other : kOthers) {
    if (text.size() < other.at || !text.substr(other.at).starts_with(other.bytes)) continue;
    fail(Errc::corrupt, "is {}: expected JPEG, PNG or WebP; convert it", other.name);
  }
  fail(Errc::corrupt, "has {} bytes that are neither JPEG nor PNG nor WebP", file.size());
}

PixelSize picture_size(std::span<const std::byte> file) {
  switch (picture_format(file)) {
    case PictureFormat::jpeg: return jpeg_size(file);
    case PictureFormat::png: return png_size(file);
    case PictureFormat::webp: break;
  }
  return webp_size(file);
}

Picture decode_picture(std::span<const std::byte> file, bool gray, int shrink, bool keeps_16_bits) {
  const PictureFormat format = picture_format(file);
  if (format == PictureFormat::jpeg) return decode_jpeg(file, gray, shrink);
  Picture picture =
      format == PictureFormat::png ? decode_png(file, keeps_16_bits) : decode_webp(file);
  if (gray) make_gray(picture);
  return picture;
}

void check_picture_size(std::int64_t width, std::int64_t height, std::size_t file_bytes,
                        std::int64_t pixels_per_byte) {
  if (width < 1 || height < 1) {
    fail(Errc::corrupt, "the picture has {} by {} pixels", width, height);
  }
  // The product of the sides can't overflow, because each side has at most 32 bits.
  if (width > kImagePixelsMax / height) {
    fail(Errc::corrupt, "the picture has {} by {} pixels; at most {} are possible", width, height,
         kImagePixelsMax);
  }
  if (width * height / pixels_per_byte > static_cast<std::int64_t>(file_bytes)) {
    fail(Errc::corrupt, "the picture has {} by {} pixels in {} bytes; was the file cut off?", width,
         height, file_bytes);
  }
}

void make_gray(Picture& picture) {
  if (picture.channels != 3) return;
  const std::int64_t count = picture.size.width * picture.size.height;
  const auto make = [&](auto* pixels) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto* const rgb = pixels + 3 * i;
      // The factors are 0.299, 0.587 and 0.114 times 2^16.
      const std::uint64_t luma = rgb[0] * std::uint64_t{19595} + rgb[1] * std::uint64_t{38470} +
                                 rgb[2] * std::uint64_t{7471} + 0x8000U;
      pixels[i] = static_cast<std::remove_reference_t<decltype(*pixels)>>(luma >> 16U);
    }
  };
  if (picture.words != nullptr) {
    make(picture.words.get());
  } else {
    make(picture.bytes.get());
  }
  picture.channels = 1;
}

}  // namespace weft
