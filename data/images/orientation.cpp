#include "data/images/orientation.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <libexif/exif-data.h>

#include "data/images/png.hpp"
#include "data/images/webp.hpp"

namespace weft {
namespace {

/// Reads the orientation from EXIF data that begins with the mark "Exif", or from a JPEG that
/// contains such data.
Orientation read_orientation(std::span<const std::byte> bytes) {
  const std::unique_ptr<ExifData, void (*)(ExifData*)> data(exif_data_new(), exif_data_unref);
  if (data == nullptr) return Orientation::upright;
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<unsigned>(bytes.size()));
  const ExifEntry* const entry =
      exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->components != 1 ||
      entry->size < sizeof(ExifShort)) {
    return Orientation::upright;
  }
  const ExifShort number = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  constexpr ExifShort kLast = 8;
  return number >= 1 && number <= kLast ? static_cast<Orientation>(number) : Orientation::upright;
}

/// Reads the orientation from EXIF data with or without the mark. In PNG there is no mark, and in
/// WebP there may be one.
Orientation read_unmarked(std::span<const std::byte> exif) {
  using namespace std::literals;
  constexpr std::string_view kMark = "Exif\0\0"sv;
  if (exif.empty()) return Orientation::upright;
  std::vector<std::byte> marked;
  const std::string_view text(reinterpret_cast<const char*>(exif.data()), exif.size());
  if (text.starts_with(kMark)) return read_orientation(exif);
  const auto mark = std::as_bytes(std::span(kMark));
  marked.assign(mark.begin(), mark.end());
  marked.insert(marked.end(), exif.begin(), exif.end());
  return read_orientation(marked);
}

bool is_sideways(Orientation orientation) { return orientation >= Orientation::transpose; }

/// Returns the position in the stored picture of the pixel that is at (x, y) in the turned picture.
std::pair<std::int64_t, std::int64_t> stored_place(Orientation orientation, PixelSize stored,
                                                   std::int64_t x, std::int64_t y) {
  const std::int64_t right = stored.width - 1;
  const std::int64_t bottom = stored.height - 1;
  switch (orientation) {
    case Orientation::upright: break;
    case Orientation::mirror: return {right - x, y};
    case Orientation::rotate_180: return {right - x, bottom - y};
    case Orientation::flip: return {x, bottom - y};
    case Orientation::transpose: return {y, x};
    case Orientation::rotate_right: return {y, bottom - x};
    case Orientation::transverse: return {right - y, bottom - x};
    case Orientation::rotate_left: return {right - y, x};
  }
  return {x, y};
}

template <typename T>
void turn_pixels(std::unique_ptr<T[]>& pixels, PixelSize stored, int channels,
                 Orientation orientation) {
  if (pixels == nullptr) return;
  const PixelSize size = turned(stored, orientation);
  auto made = std::make_unique_for_overwrite<T[]>(
      static_cast<std::size_t>(size.width * size.height * channels));
  T* to = made.get();
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      const auto [from_x, from_y] = stored_place(orientation, stored, x, y);
      to = std::copy_n(pixels.get() + (from_y * stored.width + from_x) * channels, channels, to);
    }
  }
  pixels = std::move(made);
}

}  // namespace

Orientation picture_orientation(std::span<const std::byte> file) {
  switch (picture_format(file)) {
    case PictureFormat::jpeg: return read_orientation(file);
    case PictureFormat::png: return read_unmarked(png_exif(file));
    case PictureFormat::webp: return read_unmarked(webp_exif(file));
  }
  return Orientation::upright;
}

PixelSize turned(PixelSize size, Orientation orientation) {
  return is_sideways(orientation) ? PixelSize{size.height, size.width} : size;
}

void turn(Picture& picture, Orientation orientation) {
  if (orientation == Orientation::upright) return;
  turn_pixels(picture.bytes, picture.size, picture.channels, orientation);
  turn_pixels(picture.words, picture.size, picture.channels, orientation);
  picture.size = turned(picture.size, orientation);
}

}  // namespace weft
