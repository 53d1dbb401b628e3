#include "examples/digits/digits_data.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>

#include <weft/error.hpp>

namespace digits {
namespace {

/// The numbers of one line.
std::vector<int> parse_line(const std::string& path, std::size_t number, const std::string& line) {
  std::vector<int> values;
  const char* at = line.data();
  const char* end = at + line.size();
  while (at != end) {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{}) break;
    values.push_back(value);
    at = next;
    if (at != end && (*at == ',' || *at == '\r')) ++at;
  }
  const bool good = at == end && values.size() == kPixels + 1 &&
                    std::ranges::all_of(values, [](int v) { return v >= 0 && v <= 16; }) &&
                    values.back() < kClasses;
  if (!good) {
    weft::fail(
        weft::Errc::corrupt,
        "{}:{}: expected {} pixels from 0 to 16 and a label from 0 to 9, separated by commas", path,
        number, kPixels);
  }
  return values;
}

using Random = std::mt19937_64;

/// Uniform in [-bound, bound], the same on every platform.
float uniform(Random& random, float bound) {
  const double unit = static_cast<double>(random() >> 11) * 0x1.0p-53;
  return bound * static_cast<float>(2 * unit - 1);
}

/// An 8x8 image at a point between its pixels; 0 outside.
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

/// Redraws one image through a random affine map of its plane.
void redraw(std::span<float> image, Random& random) {
  const std::vector<float> original(image.begin(), image.end());
  const float angle = uniform(random, 0.2F);
  const float cosine = std::cos(angle);
  const float sine = std::sin(angle);
  const float shear = uniform(random, 0.3F);
  const float width = 1 + uniform(random, 0.15F);
  const float height = 1 + uniform(random, 0.15F);
  const float right = uniform(random, 0.7F);
  const float down = uniform(random, 0.7F);
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

Images Images::pick(std::span<const std::int64_t> indices) const {
  Images picked;
  for (const std::int64_t i : indices) {
    const auto row = pixels.begin() + i * kPixels;
    picked.pixels.insert(picked.pixels.end(), row, row + kPixels);
    picked.labels.push_back(labels[static_cast<std::size_t>(i)]);
  }
  return picked;
}

Dataset load(const std::string& path) {
  std::ifstream in(path);
  if (!in) weft::fail(weft::Errc::io, "can't open {}", path);
  Images all;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::vector<int> values = parse_line(path, ++number, line);
    for (std::size_t p = 0; p < kPixels; ++p) {
      all.pixels.push_back(static_cast<float>(values[p]) / 16.0F);
    }
    all.labels.push_back(values.back());
  }
  std::vector<std::int64_t> indices(all.labels.size());
  std::iota(indices.begin(), indices.end(), 0);
  const auto test = std::span(indices).last(indices.size() / 5);
  const auto train = std::span(indices).first(indices.size() - test.size());
  return {.train = all.pick(train), .test = all.pick(test)};
}

Images augmented(Images images, std::uint64_t seed, std::uint64_t step) {
  std::seed_seq words{seed, seed >> 32, step, step >> 32, std::uint64_t{1}};
  Random random(words);
  const std::span pixels(images.pixels);
  for (std::size_t i = 0; i < images.labels.size(); ++i) {
    redraw(pixels.subspan(i * kPixels, kPixels), random);
  }
  return images;
}

}  // namespace digits
