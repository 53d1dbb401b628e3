#pragma once
/// Resizes pictures with a triangle filter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weft/data/image_transforms.hpp>
#include <weft/data/item_random.hpp>

namespace weft {

/// A rectangle in a picture. The numbers are pixels and may be fractions.
struct PixelRect {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

struct PixelSize {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const PixelSize&, const PixelSize&) = default;
};

/// The pixels of a picture, in row-major order. The channels of a pixel are adjacent. `T` is
/// std::uint8_t, std::uint16_t, or float for one channel.
template <typename T>
struct Pixels {
  const T* data = nullptr;
  PixelSize size{};
  int channels = 1;
};

/// Describes a resizing: `rect` of a picture is scaled to the size `scaled`, and the part of the
/// result that begins at (left, top) is written.
struct Resampling {
  PixelRect rect{};
  PixelSize scaled{};
  std::int64_t left = 0;
  std::int64_t top = 0;
};

/// The destination of a channel: element = value * scale + offset. `row_stride` is the distance of
/// rows in elements.
struct ChannelOut {
  float* data = nullptr;
  std::int64_t row_stride = 0;
  float scale = 1;
  float offset = 0;
};

/// Writes `size` pixels of each channel. `rect` must be within the picture. The filter ignores
/// positions outside of the picture.
template <typename T>
void resample(const Pixels<T>& from, const Resampling& how, PixelSize size,
              std::span<const ChannelOut> out);

/// Picks a rectangle in whole pixels; see RandomArea.
PixelRect random_rect(const RandomArea& area, PixelSize picture, ItemRandom& random);

/// Throws invalid_argument if no area can satisfy the bounds. The message contains `what`, such as
/// the name of the option.
void check_area(const RandomArea& area, std::string_view what);

/// Throws invalid_argument unless there is one finite number for each channel, or one for all
/// channels.
void check_channel_numbers(std::string_view what, std::span<const float> numbers,
                           std::int64_t channels);
/// Throws invalid_argument if a number isn't positive.
void check_divisors(std::string_view what, std::span<const float> numbers);

}  // namespace weft
