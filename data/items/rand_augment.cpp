#include "data/items/rand_augment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr int kWhite = 255;

std::span<std::uint8_t> channel_of(const ByteImage& image, std::int64_t channel) {
  const auto plane = static_cast<std::size_t>(image.height * image.width);
  return image.pixels.subspan(static_cast<std::size_t>(channel) * plane, plane);
}

using ByteTable = std::array<std::uint8_t, 256>;

void look_up(std::span<std::uint8_t> pixels, const ByteTable& table) {
  for (std::uint8_t& pixel : pixels) pixel = table[pixel];
}

void warp_bytes(const ByteImage& image, const PixelMap& map, double fill) {
  const std::vector<std::uint8_t> before(image.pixels.begin(), image.pixels.end());
  const Image<const std::uint8_t> from{before, image.channels, image.height, image.width};
  warp(from, image, map, false, fill);
}

/// The strength of a step: `part` is a fraction of the maximum, 0 to 1, and `sign` is -1 or 1.
struct Strength {
  double part = 0;
  double sign = 1;
  double of(double most) const { return sign * part * most; }
};

// These maxima are torchvision's.
constexpr double kShearMax = 0.3;
constexpr double kTranslateMax = 150.0 / 331;  // fraction of the side
constexpr double kRotateMax = 30;
constexpr double kFactorMax = 0.9;
constexpr double kBitsMax = 4;

using AugmentStep = void (*)(const ByteImage& image, const Strength& strength, double fill);
constexpr std::array<AugmentStep, 14> kAugmentSteps{
    [](const ByteImage&, const Strength&, double) {},
    // Shears relative to the upper left corner.
    [](const ByteImage& image, const Strength& strength, double fill) {
      const double shear = strength.of(kShearMax);
      warp_bytes(image, {.b = shear, .c = shear * static_cast<double>(image.height) / 2}, fill);
    },
    [](const ByteImage& image, const Strength& strength, double fill) {
      const double shear = strength.of(kShearMax);
      warp_bytes(image, {.d = shear, .f = shear * static_cast<double>(image.width) / 2}, fill);
    },
    [](const ByteImage& image, const Strength& strength, double fill) {
      const double most = kTranslateMax * static_cast<double>(image.width);
      warp_bytes(image, {.c = -std::trunc(strength.of(most))}, fill);
    },
    [](const ByteImage& image, const Strength& strength, double fill) {
      const double most = kTranslateMax * static_cast<double>(image.height);
      warp_bytes(image, {.f = -std::trunc(strength.of(most))}, fill);
    },
    [](const ByteImage& image, const Strength& strength, double fill) {
      warp_bytes(image, rotation(strength.of(kRotateMax)), fill);
    },
    [](const ByteImage& image, const Strength& strength, double) {
      adjust_brightness(image, 1 + strength.of(kFactorMax));
    },
    [](const ByteImage& image, const Strength& strength, double) {
      adjust_saturation(image, 1 + strength.of(kFactorMax));
    },
    [](const ByteImage& image, const Strength& strength, double) {
      adjust_contrast(image, 1 + strength.of(kFactorMax));
    },
    [](const ByteImage& image, const Strength& strength, double) {
      adjust_sharpness(image, 1 + strength.of(kFactorMax));
    },
    [](const ByteImage& image, const Strength& strength, double) {
      posterize(image, 8 - static_cast<int>(std::nearbyint(strength.part * kBitsMax)));
    },
    [](const ByteImage& image, const Strength& strength, double) {
      solarize(image, kWhite * (1 - strength.part));
    },
    [](const ByteImage& image, const Strength&, double) { auto_contrast(image); },
    [](const ByteImage& image, const Strength&, double) { equalize(image); },
};

}  // namespace

void posterize(const ByteImage& image, int bits) {
  const auto mask = static_cast<std::uint8_t>(kWhite << (8 - bits));
  for (std::uint8_t& pixel : image.pixels) pixel &= mask;
}

void solarize(const ByteImage& image, double threshold) {
  for (std::uint8_t& pixel : image.pixels) {
    if (pixel >= threshold) pixel = static_cast<std::uint8_t>(kWhite - pixel);
  }
}

void auto_contrast(const ByteImage& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::span<std::uint8_t> pixels = channel_of(image, c);
    const auto [least, most] = std::ranges::minmax(pixels);
    if (least == most) continue;
    const double scale = static_cast<double>(kWhite) / (most - least);
    ByteTable table{};
    for (int value = least; value <= most; ++value) {
      table[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>((value - least) * scale);
    }
    look_up(pixels, table);
  }
}

void equalize(const ByteImage& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::span<std::uint8_t> pixels = channel_of(image, c);
    std::array<std::int64_t, 256> counts{};
    for (const std::uint8_t pixel : pixels) ++counts[pixel];
    const std::int64_t last = counts[std::ranges::max(pixels)];
    const std::int64_t step = (std::ssize(pixels) - last) / kWhite;
    if (step == 0) continue;
    ByteTable table{};
    std::int64_t below = step / 2;
    for (std::size_t value = 0; value < table.size(); ++value) {
      table[value] = static_cast<std::uint8_t>(std::min<std::int64_t>(below / step, kWhite));
      below += counts[value];
    }
    look_up(pixels, table);
  }
}

void adjust_sharpness(const ByteImage& image, double factor) {
  const std::vector<std::uint8_t> before(image.pixels.begin(), image.pixels.end());
  const Image<const std::uint8_t> from{before, image.channels, image.height, image.width};
  constexpr int kMiddle = 5;
  constexpr double kSum = 13;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = 1; y + 1 < image.height; ++y) {
      for (std::int64_t x = 1; x + 1 < image.width; ++x) {
        int sum = (kMiddle - 1) * from.row(c, y)[x];
        for (std::int64_t row = y - 1; row <= y + 1; ++row) {
          for (std::int64_t column = x - 1; column <= x + 1; ++column) {
            sum += from.row(c, row)[column];
          }
        }
        const double smooth = std::floor(sum / kSum + 0.5);
        const double value = factor * from.row(c, y)[x] + (1 - factor) * smooth;
        image.row(c, y)[x] =
            static_cast<std::uint8_t>(std::clamp(value, 0.0, static_cast<double>(kWhite)));
      }
    }
  }
}

void check_augment(const RandAugment& step, const TensorType& type) {
  const auto refuse = [](std::string_view what, auto value, std::string_view expected) {
    fail(Errc::invalid_argument, "RandAugment: {} = {}: expected {}", what, value, expected);
  };
  if (type.dtype != DType::u8) refuse("the field's dtype", to_string(type.dtype), "u8");
  if (step.num_ops < 0) refuse("num_ops", step.num_ops, "0 or more");
  if (step.num_magnitude_bins < 2)
    refuse("num_magnitude_bins", step.num_magnitude_bins, "2 or more");
  if (step.magnitude < 0 || step.magnitude >= step.num_magnitude_bins) {
    refuse("magnitude", step.magnitude, "0 to num_magnitude_bins - 1");
  }
  if (!(step.fill >= 0 && step.fill <= kWhite)) refuse("fill", step.fill, "0 to 255");
}

void apply_augment(const RandAugment& step, const ByteImage& image, ItemRandom& random) {
  for (int i = 0; i < step.num_ops; ++i) {
    const auto which = static_cast<std::size_t>(random.below(std::ssize(kAugmentSteps)));
    const Strength strength{
        .part = static_cast<double>(step.magnitude) / (step.num_magnitude_bins - 1),
        .sign = random.below(2) == 0 ? 1.0 : -1.0};
    kAugmentSteps[which](image, strength, step.fill);
  }
}

}  // namespace weft
