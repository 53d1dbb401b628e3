#include "data/items/image_steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>

namespace weft {
namespace {

template <typename T>
constexpr double white() {
  return std::is_floating_point_v<T> ? 1.0 : 255.0;
}

template <typename T>
T as_pixel(double value) {
  return static_cast<T>(std::clamp(value, 0.0, white<T>()));
}

template <typename T>
T luma(double red, double green, double blue) {
  return static_cast<T>(0.2989 * red + 0.587 * green + 0.114 * blue);
}

/// Calls `change(red, green, blue)` for each pixel of a picture with three channels.
template <typename T, typename Change>
void change_colours(const Image<T>& image, Change change) {
  const std::int64_t plane = image.height * image.width;
  T* const red = image.pixels.data();
  for (std::int64_t i = 0; i < plane; ++i) {
    change(red[i], red[i + plane], red[i + 2 * plane]);
  }
}

template <typename T>
double mean_luma(const Image<T>& image) {
  double sum = 0;
  if (image.channels == 3) {
    change_colours(image, [&](T red, T green, T blue) {
      sum += static_cast<double>(luma<T>(red, green, blue));
    });
  } else {
    for (const T pixel : image.pixels) sum += static_cast<double>(pixel);
  }
  return sum / static_cast<double>(image.pixels.size()) * (image.channels == 3 ? 3 : 1);
}

struct Hsv {
  double hue = 0;
  double saturation = 0;
  double value = 0;
};

Hsv to_hsv(double red, double green, double blue) {
  const double most = std::max({red, green, blue});
  const double range = most - std::min({red, green, blue});
  if (range == 0) return {0, 0, most};
  double sixth = 0;
  if (most == red) {
    sixth = (green - blue) / range;
  } else if (most == green) {
    sixth = 2 + (blue - red) / range;
  } else {
    sixth = 4 + (red - green) / range;
  }
  const double hue = sixth / 6;
  return {hue - std::floor(hue), range / most, most};
}

std::array<double, 3> to_rgb(const Hsv& hsv) {
  const double sixth = std::floor(hsv.hue * 6);
  const double rest = hsv.hue * 6 - sixth;
  const double v = hsv.value;
  const double p = v * (1 - hsv.saturation);
  const double q = v * (1 - hsv.saturation * rest);
  const double t = v * (1 - hsv.saturation * (1 - rest));
  switch (static_cast<int>(sixth) % 6) {
    case 0: return {v, t, p};
    case 1: return {q, v, p};
    case 2: return {p, v, t};
    case 3: return {p, q, v};
    case 4: return {t, p, v};
    default: return {v, p, q};
  }
}

/// Converts a number from 0 to 1 to a pixel value.
template <typename T>
T from_unit(double value) {
  // With this factor, equal parts of [0, 1] are converted to each of the 256 integers.
  constexpr double kSteps = 255 + 1 - 1e-3;
  return std::is_floating_point_v<T> ? static_cast<T>(value) : static_cast<T>(value * kSteps);
}

/// Returns the pixel at a position, or `fill` if the position is outside of the picture.
template <typename T>
double pixel_at(const Image<const T>& image, std::int64_t channel, std::int64_t y, std::int64_t x,
                double fill) {
  if (y < 0 || y >= image.height || x < 0 || x >= image.width) return fill;
  return static_cast<double>(image.row(channel, y)[x]);
}

template <typename T>
double bilinear_at(const Image<const T>& image, std::int64_t channel, double y, double x,
                   double fill) {
  const double top = std::floor(y);
  const double left = std::floor(x);
  const auto row = static_cast<std::int64_t>(top);
  const auto column = static_cast<std::int64_t>(left);
  const auto at = [&](std::int64_t down, std::int64_t right) {
    return pixel_at(image, channel, row + down, column + right, fill);
  };
  const double right = x - left;
  const double down = y - top;
  return (1 - down) * ((1 - right) * at(0, 0) + right * at(0, 1)) +
         down * ((1 - right) * at(1, 0) + right * at(1, 1));
}

}  // namespace

template <typename T>
void adjust_brightness(const Image<T>& image, double factor) {
  for (T& pixel : image.pixels) pixel = as_pixel<T>(factor * static_cast<double>(pixel));
}

template <typename T>
void adjust_contrast(const Image<T>& image, double factor) {
  const double mean = mean_luma(image);
  for (T& pixel : image.pixels) {
    pixel = as_pixel<T>(factor * static_cast<double>(pixel) + (1 - factor) * mean);
  }
}

template <typename T>
void adjust_saturation(const Image<T>& image, double factor) {
  if (image.channels != 3) return;
  change_colours(image, [&](T& red, T& green, T& blue) {
    const auto gray = static_cast<double>(luma<T>(red, green, blue));
    for (T* const pixel : {&red, &green, &blue}) {
      *pixel = as_pixel<T>(factor * static_cast<double>(*pixel) + (1 - factor) * gray);
    }
  });
}

template <typename T>
void adjust_hue(const Image<T>& image, double shift) {
  if (image.channels != 3) return;
  change_colours(image, [&](T& red, T& green, T& blue) {
    const auto unit = [](T pixel) { return static_cast<double>(pixel) / white<T>(); };
    Hsv hsv = to_hsv(unit(red), unit(green), unit(blue));
    hsv.hue += shift;
    hsv.hue -= std::floor(hsv.hue);
    const std::array<double, 3> rgb = to_rgb(hsv);
    red = from_unit<T>(rgb[0]);
    green = from_unit<T>(rgb[1]);
    blue = from_unit<T>(rgb[2]);
  });
}

PixelMap rotation(double degrees) {
  const double radians = degrees * std::numbers::pi / 180;
  return {.a = std::cos(radians),
          .b = -std::sin(radians),
          .d = std::sin(radians),
          .e = std::cos(radians)};
}

template <typename T>
void warp(const Image<const T>& in, const Image<T>& out, const PixelMap& map, bool is_bilinear,
          double fill) {
  const double middle_x = static_cast<double>(in.width) / 2;
  const double middle_y = static_cast<double>(in.height) / 2;
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t x = 0; x < out.width; ++x) {
      const double right = static_cast<double>(x) + 0.5 - middle_x;
      const double down = static_cast<double>(y) + 0.5 - middle_y;
      const double from_x = map.a * right + map.b * down + map.c + middle_x;
      const double from_y = map.d * right + map.e * down + map.f + middle_y;
      for (std::int64_t c = 0; c < out.channels; ++c) {
        const double value = is_bilinear
                                 ? bilinear_at(in, c, from_y - 0.5, from_x - 0.5, fill)
                                 : pixel_at(in, c, static_cast<std::int64_t>(std::floor(from_y)),
                                            static_cast<std::int64_t>(std::floor(from_x)), fill);
        out.row(c, y)[x] = std::is_floating_point_v<T> ? static_cast<T>(value)
                                                       : static_cast<T>(std::lround(value));
      }
    }
  }
}

#define WEFT_IMAGE_STEPS(T)                                 \
  template void adjust_brightness(const Image<T>&, double); \
  template void adjust_contrast(const Image<T>&, double);   \
  template void adjust_saturation(const Image<T>&, double); \
  template void adjust_hue(const Image<T>&, double);        \
  template void warp(const Image<const T>&, const Image<T>&, const PixelMap&, bool, double);
WEFT_IMAGE_STEPS(float)
WEFT_IMAGE_STEPS(std::uint8_t)
WEFT_IMAGE_STEPS(std::int32_t)
#undef WEFT_IMAGE_STEPS

}  // namespace weft
