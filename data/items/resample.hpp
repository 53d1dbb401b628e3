#pragma once
/// Changes the size of pictures by a triangle filter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weft/image_transforms.hpp>
#include <weft/item_random.hpp>

namespace weft {

/// A rectangle in a picture, in pixels that may have fractions.
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

/// Pixels with channels one behind the other, row-major. `T`: std::uint8_t, std::uint16_t, or
/// float of one channel.
template <typename T>
struct Pixels {
  const T* data = nullptr;
  PixelSize size{};
  int channels = 1;
};

/// What is made of a picture: `rect` of it gets the size `scaled`, of which the part from
/// (left, top) on is written.
struct Resampling {
  PixelRect rect{};
  PixelSize scaled{};
  std::int64_t left = 0;
  std::int64_t top = 0;
};

/// Where a channel goes: element = value * scale + offset. `row_stride` in elements.
struct ChannelOut {
  float* data = nullptr;
  std::int64_t row_stride = 0;
  float scale = 1;
  float offset = 0;
};

/// Writes `size` pixels of each channel. `rect` lies in the picture; pixels beyond it are left out
/// of the means.
template <typename T>
void resample(const Pixels<T>& from, const Resampling& how, PixelSize size,
              std::span<const ChannelOut> out);

/// See RandomArea. In whole pixels.
PixelRect random_rect(const RandomArea& area, PixelSize picture, ItemRandom& random);

/// Throws invalid_argument, naming what has the area, for bounds that no area can have.
void check_area(const RandomArea& area, std::string_view what);

/// Throws invalid_argument unless there is a finite number for each channel, or one for all.
void check_channel_numbers(std::string_view what, std::span<const float> numbers,
                           std::int64_t channels);
/// Throws invalid_argument for a number that isn't positive.
void check_divisors(std::string_view what, std::span<const float> numbers);

}  // namespace weft
