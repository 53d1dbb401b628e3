#include <weft/data/image_transforms.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/image_steps.hpp"
#include "data/items/rand_augment.hpp"
#include "data/items/resample.hpp"

namespace weft {
namespace {

constexpr std::int64_t kSideMax = std::int64_t{1} << 20;

/// Throws invalid_argument unless a part of this size fits into the picture.
void check_part(std::string_view step, std::int64_t height, std::int64_t width,
                std::int64_t height_max, std::int64_t width_max) {
  if (height >= 1 && height <= height_max && width >= 1 && width <= width_max) return;
  fail(Errc::invalid_argument, "{}: height = {}, width = {}: expected 1 to {}, and 1 to {}", step,
       height, width, height_max, width_max);
}

void require_f32(std::string_view step, DType dtype) {
  if (dtype == DType::f32) return;
  fail(Errc::invalid_argument, "{}: the field is {}; this step needs f32", step, to_string(dtype));
}

float of_channel(const std::vector<float>& numbers, std::int64_t channel) {
  return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
}

// For each step there are two functions: shape_after() returns the shape of the step's result, and
// apply() runs the step.

Shape shape_after(const RandomCrop& step, const TensorType& type) {
  if (step.padding < 0 || step.padding > kSideMax) {
    fail(Errc::invalid_argument, "RandomCrop: padding = {}: expected 0 to {}", step.padding,
         kSideMax);
  }
  constexpr float kFillMax = 1e9F;  // fits in i32
  if (!(std::abs(step.fill) <= kFillMax)) {
    fail(Errc::invalid_argument, "RandomCrop: fill = {}: expected -{} to {}", step.fill, kFillMax,
         kFillMax);
  }
  check_part("RandomCrop", step.height, step.width, type.shape[1] + 2 * step.padding,
             type.shape[2] + 2 * step.padding);
  return {type.shape[0], step.height, step.width};
}

/// Copies the part of `in` that begins at (top, left) to `out`. If the part extends beyond the
/// picture, the pixels outside of the picture become `fill`.
template <typename T>
void copy_part(const Image<const T>& in, const Image<T>& out, std::int64_t top, std::int64_t left,
               T fill = 0) {
  const std::int64_t before = std::clamp<std::int64_t>(-left, 0, out.width);
  const std::int64_t end = std::clamp<std::int64_t>(in.width - left, before, out.width);
  for (std::int64_t c = 0; c < out.channels; ++c) {
    for (std::int64_t y = 0; y < out.height; ++y) {
      T* const to = out.row(c, y);
      if (top + y < 0 || top + y >= in.height) {
        std::fill(to, to + out.width, fill);
        continue;
      }
      const T* const from = in.row(c, top + y) + left;
      std::fill(to, to + before, fill);
      std::copy(from + before, from + end, to + before);
      std::fill(to + end, to + out.width, fill);
    }
  }
}

template <typename T>
void apply(const RandomCrop& step, const Image<const T>& in, const Image<T>& out,
           ItemRandom& random) {
  const std::int64_t top = random.below(in.height + 2 * step.padding - out.height + 1);
  const std::int64_t left = random.below(in.width + 2 * step.padding - out.width + 1);
  copy_part(in, out, top - step.padding, left - step.padding, static_cast<T>(step.fill));
}

Shape shape_after(const CenterCrop& step, const TensorType& type) {
  check_part("CenterCrop", step.height, step.width, type.shape[1], type.shape[2]);
  return {type.shape[0], step.height, step.width};
}

template <typename T>
void apply(const CenterCrop&, const Image<const T>& in, const Image<T>& out, ItemRandom&) {
  // half() rounds a result such as 1.5 to the nearest even number, as in Python.
  const auto half = [](std::int64_t size) { return size / 2 + (size % 4 == 3 ? 1 : 0); };
  copy_part(in, out, half(in.height - out.height), half(in.width - out.width));
}

Shape shape_after(const RandomResizedCrop& step, const TensorType& type) {
  require_f32("RandomResizedCrop", type.dtype);
  check_area(step.area, "RandomResizedCrop");
  check_part("RandomResizedCrop", step.height, step.width, kSideMax, kSideMax);
  return {type.shape[0], step.height, step.width};
}

template <typename T>
void apply(const RandomResizedCrop& step, const Image<const T>& in, const Image<T>& out,
           ItemRandom& random) {
  if constexpr (std::is_same_v<T, float>) {
    const PixelSize size{out.width, out.height};
    const Resampling how{.rect = random_rect(step.area, {in.width, in.height}, random),
                         .scaled = size};
    for (std::int64_t c = 0; c < in.channels; ++c) {
      const ChannelOut channel{.data = out.row(c, 0), .row_stride = out.width};
      resample(Pixels<float>{in.row(c, 0), {in.width, in.height}}, how, size, {&channel, 1});
    }
  }
}

Shape shape_after(const RandomHorizontalFlip& step, const TensorType& type) {
  if (!(step.probability >= 0 && step.probability <= 1)) {
    fail(Errc::invalid_argument, "RandomHorizontalFlip: probability = {}: expected 0 to 1",
         step.probability);
  }
  return type.shape;
}

template <typename T>
void apply(const RandomHorizontalFlip& step, const Image<const T>& in, const Image<T>& out,
           ItemRandom& random) {
  if (random.uniform() >= step.probability) {
    std::ranges::copy(in.pixels, out.pixels.begin());
    return;
  }
  for (std::int64_t row = 0; row < in.channels * in.height; ++row) {
    const T* const from = in.pixels.data() + row * in.width;
    std::reverse_copy(from, from + in.width, out.pixels.data() + row * in.width);
  }
}

Shape shape_after(const Normalize& step, const TensorType& type) {
  require_f32("Normalize", type.dtype);
  check_channel_numbers("Normalize: mean", step.mean, type.shape[0]);
  check_channel_numbers("Normalize: stddev", step.stddev, type.shape[0]);
  check_divisors("Normalize: stddev", step.stddev);
  return type.shape;
}

template <typename T>
void apply(const Normalize& step, const Image<const T>& in, const Image<T>& out, ItemRandom&) {
  if constexpr (std::is_same_v<T, float>) {
    for (std::int64_t c = 0; c < in.channels; ++c) {
      const float mean = of_channel(step.mean, c);
      const float stddev = of_channel(step.stddev, c);
      std::transform(in.row(c, 0), in.row(c, 0) + in.height * in.width, out.row(c, 0),
                     [&](float value) { return (value - mean) / stddev; });
    }
  }
}

Shape shape_after(const ColorJitter& step, const TensorType& type) {
  const auto check = [](std::string_view name, double value, double most) {
    if (value >= 0 && value <= most) return;
    fail(Errc::invalid_argument, "ColorJitter: {} = {}: expected 0 to {}", name, value, most);
  };
  constexpr double kFactorMax = 100;
  check("brightness", step.brightness, kFactorMax);
  check("contrast", step.contrast, kFactorMax);
  check("saturation", step.saturation, kFactorMax);
  check("hue", step.hue, 0.5);
  return type.shape;
}

template <typename T>
void apply(const ColorJitter& step, const Image<const T>& in, const Image<T>& out,
           ItemRandom& random) {
  std::ranges::copy(in.pixels, out.pixels.begin());
  std::array<int, 4> order{0, 1, 2, 3};
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  const auto factor = [&](double x) {
    const double least = std::max(0.0, 1 - x);
    return least + (1 + x - least) * random.uniform();
  };
  const double brightness = factor(step.brightness);
  const double contrast = factor(step.contrast);
  const double saturation = factor(step.saturation);
  const double hue = step.hue * (2 * random.uniform() - 1);
  for (const int which : order) {
    if (which == 0 && step.brightness > 0) adjust_brightness(out, brightness);
    if (which == 1 && step.contrast > 0) adjust_contrast(out, contrast);
    if (which == 2 && step.saturation > 0) adjust_saturation(out, saturation);
    if (which == 3 && step.hue > 0) adjust_hue(out, hue);
  }
}

Shape shape_after(const RandomRotation& step, const TensorType& type) {
  constexpr double kDegreesMax = 360;
  if (!(step.degrees >= 0 && step.degrees <= kDegreesMax)) {
    fail(Errc::invalid_argument, "RandomRotation: degrees = {}: expected 0 to {}", step.degrees,
         kDegreesMax);
  }
  constexpr float kFillMax = 1e9F;  // fits in i32
  const float most = type.dtype == DType::u8 ? 255.0F : kFillMax;
  if (!(std::abs(step.fill) <= most) || (type.dtype == DType::u8 && step.fill < 0)) {
    fail(Errc::invalid_argument, "RandomRotation: fill = {}: expected a pixel of {}", step.fill,
         to_string(type.dtype));
  }
  return type.shape;
}

template <typename T>
void apply(const RandomRotation& step, const Image<const T>& in, const Image<T>& out,
           ItemRandom& random) {
  const double degrees = step.degrees * (2 * random.uniform() - 1);
  warp(in, out, rotation(degrees), step.bilinear, step.fill);
}

Shape shape_after(const RandAugment& step, const TensorType& type) {
  check_augment(step, type);
  return type.shape;
}

template <typename T>
void apply(const RandAugment& step, const Image<const T>& in, const Image<T>& out,
           ItemRandom& random) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    std::ranges::copy(in.pixels, out.pixels.begin());
    apply_augment(step, out, random);
  }
}

/// The steps of a transform, and the shapes between them.
struct Pipeline {
  std::string field;
  std::vector<ImageStep> steps;
  std::vector<Shape> shapes;  ///< shapes before the first step and after each step

  template <typename T>
  void run(const ItemView& in, const ItemWriter& out, ItemRandom& random) const {
    std::vector<T> made;
    std::span<const T> from = in.get<T>(field);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const bool is_last = i + 1 == steps.size();
      std::vector<T> next(is_last ? 0 : static_cast<std::size_t>(shapes[i + 1].num_elements()));
      const std::span<T> to = is_last ? out.get<T>(std::size_t{0}) : std::span<T>(next);
      std::visit(
          [&](const auto& step) {
            apply(step, as_image(from, shapes[i]), as_image(to, shapes[i + 1]), random);
          },
          steps[i]);
      made = std::move(next);
      from = made;
    }
  }
};

}  // namespace

DatasetPtr transform_images(DatasetPtr source, std::vector<ImageStep> steps,
                            const std::string& field) {
  check_parts("transform_images", {&source, 1});
  const std::vector<Field>& given = source->fields();
  const auto found = std::ranges::find(given, field, &Field::name);
  if (found == given.end() || found->type.shape.size() != 3 ||
      (found->type.dtype != DType::f32 && found->type.dtype != DType::i32 &&
       found->type.dtype != DType::u8)) {
    fail(
        Errc::invalid_argument,
        "transform_images: field = '{}': expected one of f32, i32 or u8 [channels, height, width]; "
        "there are: {}",
        field, fields_text(given));
  }
  if (steps.empty()) fail(Errc::invalid_argument, "transform_images: there are no steps");
  TensorType type = found->type;
  Pipeline pipeline{field, std::move(steps), {type.shape}};
  for (const ImageStep& step : pipeline.steps) {
    type.shape = std::visit([&](const auto& each) { return shape_after(each, type); }, step);
    pipeline.shapes.push_back(type.shape);
  }
  MapOptions options{.name = "transform_images"};
  for (const Field& other : given) {
    if (other.name != field) options.keep.push_back(other.name);
  }
  return map(
      std::move(source), {{field, type}},
      [pipeline = std::move(pipeline), dtype = type.dtype](
          const ItemView& in, const ItemWriter& out, ItemRandom& random) {
        if (dtype == DType::f32) return pipeline.run<float>(in, out, random);
        if (dtype == DType::u8) return pipeline.run<std::uint8_t>(in, out, random);
        pipeline.run<std::int32_t>(in, out, random);
      },
      std::move(options));
}

}  // namespace weft
