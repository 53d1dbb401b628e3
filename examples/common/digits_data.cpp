#include "examples/common/digits_data.hpp"

#include <cmath>
#include <cstddef>
#include <span>

namespace digits {
namespace {

/// Returns the value of an 8x8 image at a point between its pixels, or 0 outside of the image.
float sample(std::span<const float> image, float x, float y) {
  const auto pixel = [&](int column, int row) {
    const bool inside = column >= 0 && column < 8 && row >= 0 && row < 8;
    return inside ? image[static_cast<std::size_t>(8 * row + column)] : 0.0F;
  };
  const float left = std::floor(x);
  const float top = std::floor(y);
  const int column = static_cast<int>(left);
  const int row = static_cast<int>(top);
  const float right_part = x - left;
  const float bottom_part = y - top;
  const float upper = pixel(column, row) * (1 - right_part) + pixel(column + 1, row) * right_part;
  const float lower =
      pixel(column, row + 1) * (1 - right_part) + pixel(column + 1, row + 1) * right_part;
  return upper * (1 - bottom_part) + lower * bottom_part;
}

/// Writes the image distorted by a random affine map of the plane.
void redraw(const weft::ItemView& in, const weft::ItemWriter& out, weft::ItemRandom& random) {
  const std::span<const float> original = in.get<float>("x");
  const std::span<float> image = out.get<float>("x");
  const auto within = [&](float bound) { return random.uniform(-bound, bound); };
  const float angle = within(0.2F);
  const float cosine = std::cos(angle);
  const float sine = std::sin(angle);
  const float shear = within(0.3F);
  const float width = 1 + within(0.15F);
  const float height = 1 + within(0.15F);
  const float right = within(0.7F);
  const float down = within(0.7F);
  constexpr float kCentre = 3.5F;
  for (std::size_t p = 0; p < image.size(); ++p) {
    const float x = static_cast<float>(p % 8) - kCentre;
    const float y = static_cast<float>(p / 8) - kCentre;
    const float turned_x = cosine * x - sine * y;
    const float turned_y = sine * x + cosine * y;
    image[p] = sample(original, turned_x * width + turned_y * shear + right + kCentre,
                      turned_y * height + down + kCentre);
  }
}

}  // namespace

Data load(const std::string& path, bool redrawn) {
  const weft::Shape image{kPixels};
  const weft::DatasetPtr all = weft::csv_file(
      path, {.fields = {{.name = "x", .item_shape = image, .scale = 1.0 / 16},
                        {.name = "y", .dtype = weft::DType::i32, .first_column = kPixels}},
             .header = false});
  const auto parts = weft::split(all, {0.8, 0.2});
  if (!redrawn) return {.train = parts[0], .test = parts[1]};
  return {.train = weft::map(parts[0], {{"x", {weft::DType::f32, image}}}, redraw, {.keep = {"y"}}),
          .test = parts[1]};
}

}  // namespace digits
