/// Implements field_of() and decode_image().

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include <weft/data/image_files.hpp>
#include <weft/tensor/error.hpp>

#include "data/images/orientation.hpp"
#include "data/images/picture.hpp"
#include "spmd/program/element.hpp"

namespace weft {
namespace {

constexpr std::int64_t kSideMax = 1 << 16;

/// Says which part of a picture is written where in a field.
struct Placement {
  Resampling how{};
  PixelSize size{};  ///< size of the written part, which is at (left, top) in the field
  std::int64_t left = 0;
  std::int64_t top = 0;
};

PixelRect whole(PixelSize picture) {
  return {0, 0, static_cast<double>(picture.width), static_cast<double>(picture.height)};
}

/// Returns size / 2. A result such as 1.5 is rounded to the nearest even number, as in Python.
std::int64_t half(std::int64_t size) { return size / 2 + (size % 4 == 3 ? 1 : 0); }

/// Returns the placement that scales the picture so that it covers the field, and takes the middle.
Placement cover(const ImageField& image, PixelSize picture) {
  // With `short_side`, the picture's shorter side gets this size. Otherwise one side gets the
  // field's size: the side for which the other side then covers the field.
  const bool by_width = image.short_side > 0
                            ? picture.width <= picture.height
                            : image.width * picture.height >= image.height * picture.width;
  PixelSize scaled;
  if (by_width) {
    scaled.width = image.short_side > 0 ? image.short_side : image.width;
    scaled.height = std::max(image.height, scaled.width * picture.height / picture.width);
  } else {
    scaled.height = image.short_side > 0 ? image.short_side : image.height;
    scaled.width = std::max(image.width, scaled.height * picture.width / picture.height);
  }
  return {.how = {.rect = whole(picture),
                  .scaled = scaled,
                  .left = half(scaled.width - image.width),
                  .top = half(scaled.height - image.height)},
          .size = {image.width, image.height}};
}

/// Returns the placement that scales the picture so that all of it is within the field.
Placement contain(const ImageField& image, PixelSize picture) {
  const bool by_width = image.width * picture.height <= image.height * picture.width;
  PixelSize size{image.width, image.height};
  if (by_width) {
    size.height = std::max<std::int64_t>(1, size.width * picture.height / picture.width);
  } else {
    size.width = std::max<std::int64_t>(1, size.height * picture.width / picture.height);
  }
  return {.how = {.rect = whole(picture), .scaled = size},
          .size = size,
          .left = half(image.width - size.width),
          .top = half(image.height - size.height)};
}

Placement place(const ImageField& image, PixelSize picture, ItemRandom& random) {
  const PixelSize size{image.width, image.height};
  if (image.random_area) {
    return {.how = {.rect = random_rect(*image.random_area, picture, random), .scaled = size},
            .size = size};
  }
  switch (image.fit) {
    case ImageFit::cover: return cover(image, picture);
    case ImageFit::contain: return contain(image, picture);
    case ImageFit::fill: break;
  }
  return {.how = {.rect = whole(picture), .scaled = size}, .size = size};
}

/// Returns the largest factor by which the decoder can shrink the picture such that `rect` isn't
/// smaller than `scaled`, the size to which it is then resized.
int shrink_for(const Resampling& how) {
  int shrink = 1;
  while (shrink < 8 && how.rect.width >= 2.0 * shrink * static_cast<double>(how.scaled.width) &&
         how.rect.height >= 2.0 * shrink * static_cast<double>(how.scaled.height)) {
    shrink *= 2;
  }
  return shrink;
}

/// Scales a rectangle in a picture of size `from` to the size `to` in which the picture was
/// decoded.
void shrink_rect(PixelRect& rect, PixelSize from, PixelSize to) {
  const double x = static_cast<double>(to.width) / static_cast<double>(from.width);
  const double y = static_cast<double>(to.height) / static_cast<double>(from.height);
  rect = {rect.left * x, rect.top * y, rect.width * x, rect.height * y};
}

/// Returns scale and offset (element = value * scale + offset) for a channel with values from 0 to
/// `white`.
std::pair<float, float> scale_of(const ImageField& image, int channel, float white) {
  if (!is_floating(image.dtype)) return {1.0F, 0.0F};
  const auto number = [&](const std::vector<float>& numbers, float otherwise) {
    if (numbers.empty()) return otherwise;
    return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
  };
  const float stddev = number(image.stddev, 1);
  return {1 / (white * stddev), -number(image.mean, 0) / stddev};
}

void resample_picture(const Picture& picture, const Placement& placement,
                      std::span<const ChannelOut> channels) {
  if (picture.words != nullptr) {
    resample(picture.deep_pixels(), placement.how, placement.size, channels);
  } else {
    resample(picture.pixels(), placement.how, placement.size, channels);
  }
}

/// Writes the picture to `out`, which has the shape f32[channels, height, width].
void write_field(const ImageField& image, const Picture& picture, const Placement& placement,
                 float* out) {
  const std::int64_t plane = image.height * image.width;
  std::array<ChannelOut, 3> channels{};
  for (int c = 0; c < image.channels; ++c) {
    const auto [scale, offset] = scale_of(image, c, picture.words != nullptr ? 65535.0F : 255.0F);
    float* const begin = out + c * plane;
    if (placement.size != PixelSize{image.width, image.height}) {
      std::fill(begin, begin + plane, offset);  // black
    }
    channels[static_cast<std::size_t>(c)] = {begin + placement.top * image.width + placement.left,
                                             image.width, scale, offset};
  }
  resample_picture(picture, placement, channels);
  if (image.channels == 3 && picture.channels == 1) {
    // A gray picture is written to each of the three channels, which may have different scales.
    for (int c = 1; c < 3; ++c) {
      resample_picture(picture, placement,
                       std::span(channels).subspan(static_cast<std::size_t>(c)));
    }
  }
}

template <typename T>
void round_pixels(std::span<const float> pixels, std::span<std::byte> out) {
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto rounded = static_cast<T>(std::clamp(std::lround(pixels[i]), 0L, 255L));
    std::memcpy(out.data() + i * sizeof rounded, &rounded, sizeof rounded);
  }
}

}  // namespace

Field field_of(const ImageField& image) {
  const auto refuse = [&](std::string_view what, auto value, std::string_view expected) {
    fail(Errc::invalid_argument, "image field '{}': {} = {}: expected {}", image.name, what, value,
         expected);
  };
  if (image.height < 1 || image.height > kSideMax) refuse("height", image.height, "1 to 65536");
  if (image.width < 1 || image.width > kSideMax) refuse("width", image.width, "1 to 65536");
  if (image.channels != 1 && image.channels != 3) refuse("channels", image.channels, "1 or 3");
  const bool is_integer = image.dtype == DType::u8 || image.dtype == DType::i32;
  if (!is_integer && image.dtype != DType::f32 && !is_half(image.dtype)) {
    refuse("dtype", to_string(image.dtype), "f32, f16, bf16, u8 or i32");
  }
  if (is_integer && !(image.mean.empty() && image.stddev.empty())) {
    refuse("dtype", fmt::format("{} with mean or stddev", to_string(image.dtype)),
           "a floating dtype, or neither mean nor stddev");
  }
  for (const auto* numbers : {&image.mean, &image.stddev}) {
    if (numbers->empty()) continue;
    check_channel_numbers(numbers == &image.mean ? "image field: mean" : "image field: stddev",
                          *numbers, image.channels);
  }
  check_divisors("image field: stddev", image.stddev);
  if (image.random_area) check_area(*image.random_area, "image field: random_area");
  const bool by_side = image.short_side != 0;
  if (by_side && (image.fit != ImageFit::cover || image.random_area)) {
    refuse("short_side", image.short_side,
           "0; short_side works only with fit = cover and without random_area");
  }
  if (by_side &&
      (image.short_side < std::max(image.height, image.width) || image.short_side > kSideMax)) {
    refuse("short_side", image.short_side, "at least height and width, and at most 65536");
  }
  return {image.name, {image.dtype, {image.channels, image.height, image.width}}};
}

void decode_image(std::span<const std::byte> file, const ImageField& image, ItemRandom& random,
                  std::span<std::byte> out) {
  const TensorType type = field_of(image).type;
  if (std::ssize(out) != type.bytes() ||
      reinterpret_cast<std::uintptr_t>(out.data()) %
              static_cast<std::uintptr_t>(byte_size(type.dtype)) !=
          0) {
    fail(Errc::invalid_argument,
         "decode_image: memory has {} bytes at {}: {} needs {} bytes, at a multiple of {}",
         out.size(), static_cast<const void*>(out.data()), type.to_string(), type.bytes(),
         byte_size(type.dtype));
  }
  const Orientation orientation =
      image.exif_orientation ? picture_orientation(file) : Orientation::upright;
  const PixelSize size = turned(picture_size(file), orientation);
  Placement placement = place(image, size, random);
  Picture picture = decode_picture(file, image.channels == 1, shrink_for(placement.how),
                                   is_floating(image.dtype));
  turn(picture, orientation);
  shrink_rect(placement.how.rect, size, picture.size);
  if (type.dtype == DType::f32) {
    return write_field(image, picture, placement, reinterpret_cast<float*>(out.data()));
  }
  std::vector<float> pixels(static_cast<std::size_t>(type.num_elements()));
  write_field(image, picture, placement, pixels.data());
  if (type.dtype == DType::u8) return round_pixels<std::uint8_t>(pixels, out);
  if (type.dtype == DType::i32) return round_pixels<std::int32_t>(pixels, out);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    store_element(type.dtype, pixels[i], out.data() + i * sizeof(Bf16));
  }
}

}  // namespace weft
