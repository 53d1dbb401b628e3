#pragma once
/// Functions that change the colours of a picture [channels, height, width], and move its pixels.

#include <cstdint>
#include <span>

#include <weft/type.hpp>

namespace weft {

/// A picture between two steps. `T`: float, with values from 0 to 1; std::uint8_t or std::int32_t,
/// with values from 0 to 255.
template <typename T>
struct Image {
  std::span<T> pixels;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  T* row(std::int64_t channel, std::int64_t y) const {
    return pixels.data() + (channel * height + y) * width;
  }
};
template <typename T>
Image<T> as_image(std::span<T> pixels, const Shape& shape) {
  return {pixels, shape[0], shape[1], shape[2]};
}

// torchvision's functions of these names, in place. Integers are cut off, as there. Saturation and
// hue change nothing of a picture that doesn't have three channels.

template <typename T>
void adjust_brightness(const Image<T>& image, double factor);
template <typename T>
void adjust_contrast(const Image<T>& image, double factor);
template <typename T>
void adjust_saturation(const Image<T>& image, double factor);
/// `shift`: -0.5 to 0.5, a part of the circle of hues.
template <typename T>
void adjust_hue(const Image<T>& image, double shift);

/// The pixel at (x, y) of a picture comes from (a x + b y + c, d x + e y + f) of another; both are
/// measured from the middles of the pictures.
struct PixelMap {
  double a = 1;
  double b = 0;
  double c = 0;
  double d = 0;
  double e = 1;
  double f = 0;
};
/// Counterclockwise, in degrees.
PixelMap rotation(double degrees);

/// `out` has the size of `in`. Pixels from beyond the picture are `fill`.
template <typename T>
void warp(const Image<const T>& in, const Image<T>& out, const PixelMap& map, bool is_bilinear,
          double fill);

}  // namespace weft
