#pragma once
/// Changes the colors of a picture [channels, height, width], and moves its pixels.

#include <cstdint>
#include <span>

#include <weft/tensor/type.hpp>

namespace weft {

/// A picture that a step changes. `T` is float, with values from 0 to 1, or std::uint8_t or
/// std::int32_t, with values from 0 to 255.
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

// The following functions do the same as torchvision's functions of the same names, but in place.
// As in torchvision, they truncate integers. adjust_saturation() and adjust_hue() change only
// pictures with three channels.

template <typename T>
void adjust_brightness(const Image<T>& image, double factor);
template <typename T>
void adjust_contrast(const Image<T>& image, double factor);
template <typename T>
void adjust_saturation(const Image<T>& image, double factor);
/// `shift` is a fraction of the hue circle, -0.5 to 0.5.
template <typename T>
void adjust_hue(const Image<T>& image, double shift);

/// A linear map of positions. The pixel at (x, y) of the result comes from (a x + b y + c, d x + e
/// y + f) of the source. Both positions are relative to the middle of the picture.
struct PixelMap {
  double a = 1;
  double b = 0;
  double c = 0;
  double d = 0;
  double e = 1;
  double f = 0;
};
/// Returns a counterclockwise rotation by an angle in degrees.
PixelMap rotation(double degrees);

/// Fills each pixel of `out` with the pixel of `in` from which the map says that it comes, or with
/// `fill` if that is outside of the picture. `in` and `out` have the same size.
template <typename T>
void warp(const Image<const T>& in, const Image<T>& out, const PixelMap& map, bool is_bilinear,
          double fill);

}  // namespace weft
