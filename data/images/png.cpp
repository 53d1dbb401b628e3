#include "data/images/png.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <png.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// The maximum number of bits to which one byte of a file unpacks, because zlib packs at most 1032
/// bytes into one byte.
constexpr std::int64_t kUnpackedBitsPerByteMax = 8 * 1032;

struct Source {
  std::span<const std::byte> left;
  std::array<char, 128> message{};
};

[[noreturn]] void leave(png_structp png, png_const_charp message) {
  auto* const source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->message.data(), message, source->message.size() - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* const source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left.size()) png_error(png, "ends too early; was the file cut off?");
  std::memcpy(out, source->left.data(), count);
  source->left = source->left.subspan(count);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : source_{.left = file} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, leave, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      destroy();
      fail(Errc::no_space, "libpng is out of memory");
    }
    run([&] {
      png_set_read_fn(png_, &source_, read_bytes);
      // libpng's own limit isn't needed, because the sides are checked below.
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_read_info(png_, info_);
    });
    try {
      const int pixel_bits = png_get_bit_depth(png_, info_) * png_get_channels(png_, info_);
      check_picture_size(size().width, size().height, file.size(),
                         kUnpackedBitsPerByteMax / pixel_bits);
    } catch (...) {
      destroy();
      throw;
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { destroy(); }

  png_structp png() const { return png_; }
  png_infop info() const { return info_; }
  PixelSize size() const {
    return {png_get_image_width(png_, info_), png_get_image_height(png_, info_)};
  }

  /// Runs `calls`, which must not create objects with a destructor, because libpng may leave them
  /// by longjmp.
  template <typename Calls>
  void run(const Calls& calls) {
    if (try_run(calls)) return;
    destroy();
    fail(Errc::corrupt, "PNG: {}", source_.message.data());
  }

 private:
  template <typename Calls>
  bool try_run(const Calls& calls) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    calls();
    return true;
  }
  void destroy() { png_destroy_read_struct(&png_, &info_, nullptr); }

  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

PixelSize png_size(std::span<const std::byte> file) { return Reader(file).size(); }

std::span<const std::byte> png_exif(std::span<const std::byte> file) {
  Reader reader(file);
  png_bytep data = nullptr;
  png_uint_32 count = 0;
  reader.run([&] { (void)png_get_eXIf_1(reader.png(), reader.info(), &count, &data); });
  if (data == nullptr) return {};
  // The result refers to the EXIF data in `file`, because libpng's copy is freed with the reader.
  const auto exif = std::as_bytes(std::span(data, count));
  const auto found = std::ranges::search(file, exif);
  return {found.data(), found.size()};
}

Picture decode_png(std::span<const std::byte> file, bool keeps_16_bits) {
  Reader reader(file);
  const png_structp png = reader.png();
  const png_infop info = reader.info();
  const bool is_deep = keeps_16_bits && png_get_bit_depth(png, info) == 16;
  reader.run([&] {
    png_set_expand(png);  // converts palettes to colors, and less than 8 bits to 8
    if (!is_deep) png_set_scale_16(png);
    if (is_deep && std::endian::native == std::endian::little) png_set_swap(png);
    png_set_strip_alpha(png);
    (void)png_set_interlace_handling(png);
    png_read_update_info(png, info);
  });
  Picture picture{.size = reader.size(), .channels = png_get_channels(png, info)};
  const std::size_t row_elements =
      static_cast<std::size_t>(picture.size.width) * static_cast<std::size_t>(picture.channels);
  const std::size_t row_bytes = row_elements * (is_deep ? 2 : 1);
  WEFT_CHECK(row_bytes == png_get_rowbytes(png, info), row_bytes, picture.channels);
  const auto height = static_cast<std::size_t>(picture.size.height);
  png_bytep begin = nullptr;
  if (is_deep) {
    picture.words = std::make_unique_for_overwrite<std::uint16_t[]>(row_elements * height);
    begin = reinterpret_cast<png_bytep>(picture.words.get());
  } else {
    picture.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(row_elements * height);
    begin = picture.bytes.get();
  }
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < height; ++y) rows[y] = begin + y * row_bytes;
  reader.run([&] {
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
  });
  return picture;
}

}  // namespace weft
