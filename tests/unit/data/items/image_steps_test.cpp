/// Compares changes of colors and rotations with Pillow, and tests the transforms and mixtures that
/// use them.

#include "data/items/image_steps.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include <weft/data/files.hpp>
#include <weft/data/image_transforms.hpp>
#include <weft/data/transforms.hpp>

#include "data/items/rand_augment.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::image_steps_test {
namespace {

using testing::expect_error;
using Bytes = std::vector<std::uint8_t>;

const Shape kShape{3, 15, 22};

Bytes pillows(const std::string& name) {
  const DatasetPtr all = npz_file(testing::golden_path("pictures/steps.npz").string());
  const ItemBuffer item = read_item(*all, {});
  const auto pixels = item.view().get<std::uint8_t>(name);
  return {pixels.begin(), pixels.end()};
}

int largest_difference(std::span<const std::uint8_t> found, const Bytes& expected) {
  int largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(int{found[i]} - int{expected[i]}));
  }
  return largest;
}

/// Compares a step with Pillow's result, on bytes and on the same image as floats.
template <typename Step>
void expect_as_pillow(const std::string& name, int tolerance, Step step) {
  Bytes bytes = pillows("image");
  std::vector<float> floats(bytes.size());
  std::ranges::transform(bytes, floats.begin(), [](std::uint8_t byte) { return byte / 255.0F; });
  step(as_image(std::span(bytes), kShape));
  EXPECT_LE(largest_difference(bytes, pillows(name)), tolerance) << name;
  step(as_image(std::span(floats), kShape));
  std::ranges::transform(floats, bytes.begin(), [](float value) {
    return static_cast<std::uint8_t>(std::lround(value * 255));
  });
  EXPECT_LE(largest_difference(bytes, pillows(name)), tolerance) << name << ", floats";
}

TEST(ImageSteps, ChangeColoursAsPillowDoes) {
  expect_as_pillow("brightness", 1, [](const auto& image) { adjust_brightness(image, 1.3); });
  expect_as_pillow("contrast", 1, [](const auto& image) { adjust_contrast(image, 0.6); });
  expect_as_pillow("saturation", 2, [](const auto& image) { adjust_saturation(image, 1.7); });
  // The tolerance is 10, because Pillow rounds hues and saturations to bytes.
  expect_as_pillow("hue", 10, [](const auto& image) { adjust_hue(image, 0.2); });
}

/// Compares a step of RandAugment with Pillow's result, on bytes.
template <typename Step>
void expect_bytes_as_pillow(const std::string& name, int tolerance, Step step) {
  Bytes bytes = pillows("image");
  step(as_image(std::span(bytes), kShape));
  EXPECT_NE(bytes, pillows("image")) << name;
  EXPECT_LE(largest_difference(bytes, pillows(name)), tolerance) << name;
}

TEST(ImageSteps, OfRandAugmentAreAsPillows) {
  expect_bytes_as_pillow("posterize", 0, [](const ByteImage& image) { posterize(image, 3); });
  expect_bytes_as_pillow("solarize", 0, [](const ByteImage& image) { solarize(image, 100); });
  expect_bytes_as_pillow("equalize", 0, [](const ByteImage& image) { equalize(image); });
  expect_bytes_as_pillow("sharpness", 1,
                         [](const ByteImage& image) { adjust_sharpness(image, 1.8); });
  expect_bytes_as_pillow("auto_contrast", 1, [](const ByteImage& image) {
    for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(pixel / 2 + 40);
    auto_contrast(image);
  });
}

TEST(ImageSteps, RandAugmentTakesEachStepAndIsAFunctionOfTheItem) {
  const DatasetPtr dataset = transform_images(tensors({{"x", pillows("image"), kShape}}),
                                              {RandAugment{.num_ops = 1, .magnitude = 20}});
  std::set<Bytes> seen;
  for (std::uint64_t epoch = 0; epoch < 300; ++epoch) {
    const ItemBuffer item = read_item(*dataset, {.epoch = epoch});
    const auto pixels = item.view().get<std::uint8_t>("x");
    seen.emplace(pixels.begin(), pixels.end());
  }
  // Nine steps may have either sign, four have no sign, and one leaves the image unchanged.
  EXPECT_EQ(seen.size(), 9U * 2 + 5);
  EXPECT_TRUE(seen.contains(pillows("image")));
  EXPECT_TRUE(seen.contains(pillows("equalize")));
  const auto refused = [](const RandAugment& step, std::string_view words) {
    expect_error(Errc::invalid_argument, {words}, [&] {
      (void)transform_images(tensors({{"x", pillows("image"), kShape}}), {step});
    });
  };
  refused({.magnitude = 31}, "magnitude = 31: expected 0 to num_magnitude_bins - 1");
  refused({.num_ops = -1}, "num_ops = -1");
  expect_error(Errc::invalid_argument, {"dtype = f32: expected u8"}, [] {
    (void)transform_images(tensors({{"x", std::vector<float>(12), {3, 2, 2}}}), {RandAugment{}});
  });
}

TEST(ImageSteps, TurnAsPillowDoes) {
  const Bytes image = pillows("image");
  Bytes turned(image.size());
  const Image<const std::uint8_t> in = as_image(std::span(image), kShape);
  warp(in, as_image(std::span(turned), kShape), rotation(30), false, 7);
  EXPECT_EQ(turned, pillows("rotated"));
  warp(in, as_image(std::span(turned), kShape), rotation(-50), true, 0);
  const Bytes expected = pillows("bilinear");
  // At the border Pillow doesn't average with the color outside.
  std::size_t alike = 0;
  for (std::size_t i = 0; i < turned.size(); ++i) {
    alike += std::abs(int{turned[i]} - int{expected[i]}) <= 1 ? 1 : 0;
  }
  EXPECT_GT(alike, turned.size() * 85 / 100);
}

TEST(ImageSteps, NoAngleAndFullCircleLeaveThePicture) {
  const Bytes image = pillows("image");
  Bytes turned(image.size());
  for (const double degrees : {0.0, 360.0}) {
    for (const bool is_bilinear : {false, true}) {
      warp(as_image(std::span(image), kShape), as_image(std::span(turned), kShape),
           rotation(degrees), is_bilinear, 0);
      EXPECT_EQ(turned, image) << degrees;
    }
  }
}

TEST(ImageSteps, LeaveHuesOfGrayPictures) {
  std::vector<float> gray{0.1F, 0.5F, 0.9F, 0.2F};
  const std::vector<float> before = gray;
  adjust_hue(as_image(std::span(gray), {1, 2, 2}), 0.3);
  adjust_saturation(as_image(std::span(gray), {1, 2, 2}), 3);
  EXPECT_EQ(gray, before);
  adjust_contrast(as_image(std::span(gray), {1, 2, 2}), 0);
  for (const float pixel : gray) EXPECT_NEAR(pixel, 0.425F, 1e-6F);
}

DatasetPtr pictures() {
  std::vector<float> pixels(4 * 3 * 8 * 8);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i / 192) / 4;
  return tensors({{"x", std::move(pixels), {3, 8, 8}},
                  {"label", std::vector<std::int32_t>{0, 1, 2, 3}},
                  {"id", std::vector<std::int32_t>{10, 11, 12, 13}}});
}

template <typename T>
std::vector<T> read(const Dataset& dataset, const Item& item, std::string_view field = "x") {
  const ItemBuffer buffer = read_item(dataset, item);
  const auto elements = buffer.view().get<T>(field);
  return {elements.begin(), elements.end()};
}

TEST(ImageSteps, JitterAndRotationAreFunctionsOfTheItem) {
  const DatasetPtr dataset = transform_images(
      pictures(), {ColorJitter{.brightness = 0.4, .contrast = 0.3, .saturation = 0.2, .hue = 0.1},
                   RandomRotation{.degrees = 20, .fill = 0.5F}});
  std::set<std::vector<float>> seen;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const auto pixels = read<float>(*dataset, {.index = 3, .epoch = epoch});
    EXPECT_EQ(read<float>(*dataset, {.index = 3, .epoch = epoch}), pixels);
    for (const float pixel : pixels) EXPECT_TRUE(pixel >= 0 && pixel <= 1) << pixel;
    seen.insert(pixels);
  }
  EXPECT_EQ(seen.size(), 20U);
  const DatasetPtr none = transform_images(pictures(), {ColorJitter{}, RandomRotation{}});
  EXPECT_EQ(read<float>(*none, {.index = 3}), read<float>(*pictures(), {.index = 3}));
  const auto refused = [](const ImageStep& step, std::string_view words) {
    expect_error(Errc::invalid_argument, {words},
                 [&] { (void)transform_images(pictures(), {step}); });
  };
  refused(ColorJitter{.hue = 0.6}, "ColorJitter: hue = 0.6: expected 0 to 0.5");
  refused(ColorJitter{.contrast = -1}, "ColorJitter: contrast = -1");
  refused(RandomRotation{.degrees = -1}, "RandomRotation: degrees = -1");
}

TEST(MixImages, BlendsPicturesAndClassesByOneShare) {
  const DatasetPtr dataset = mix_up(pictures(), {.num_classes = 5, .alpha = 0.4});
  EXPECT_EQ(dataset->fields()[1], (Field{"label", {DType::f32, {5}}}));
  double sum = 0;
  double of_ends = 0;
  constexpr int kDraws = 2000;
  for (std::uint64_t epoch = 0; epoch < kDraws; ++epoch) {
    const Item item{.index = 2, .epoch = epoch};
    const auto shares = read<float>(*dataset, item, "label");
    float total = 0;
    float pixel = 0;
    for (std::size_t c = 0; c < 5; ++c) {
      total += shares[c];
      pixel += shares[c] * static_cast<float>(c) / 4;
    }
    EXPECT_NEAR(total, 1, 1e-5);
    for (const float each : read<float>(*dataset, item)) EXPECT_NEAR(each, pixel, 1e-5);
    EXPECT_EQ(read<std::int32_t>(*dataset, item, "id")[0], 12);
    sum += shares[2];
    of_ends += shares[2] < 0.1F || shares[2] > 0.9F ? 1 : 0;
  }
  // A quarter of the items are mixed with themselves, so their share is 1.
  EXPECT_NEAR(sum / kDraws, 0.25 + 0.75 * 0.5, 0.03);
  // A draw of Beta(0.4, 0.4) is within 0.1 of 0 or 1 with probability 0.48.
  EXPECT_NEAR(of_ends / kDraws, 0.25 + 0.75 * 0.48, 0.05);
}

TEST(MixImages, CutsARectangleOfTheShareThatTheClassesHave) {
  const DatasetPtr dataset = cut_mix(pictures(), {.num_classes = 4});
  std::set<float> seen;
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    const Item item{.index = 1, .epoch = epoch};
    const auto shares = read<float>(*dataset, item, "label");
    const auto pixels = read<float>(*dataset, item);
    for (std::size_t c = 0; c < 4; ++c) {
      const auto of_class = std::ranges::count(pixels, static_cast<float>(c) / 4);
      EXPECT_NEAR(static_cast<float>(of_class) / 192, shares[c], 1e-5) << "class " << c;
    }
    seen.insert(shares[1]);
  }
  EXPECT_GT(seen.size(), 10U);
}

TEST(MixImages, RefusesFieldsAndClassesThatDoNotFit) {
  const auto refused = [](MixImagesOptions options, std::string_view words) {
    expect_error(Errc::invalid_argument, {words},
                 [&] { (void)read_item(*mix_up(pictures(), std::move(options)), {.index = 3}); });
  };
  refused({.num_classes = 1}, "num_classes = 1: expected 2 or more");
  refused({.num_classes = 4, .alpha = 0}, "alpha = 0");
  refused({.num_classes = 4, .field = "y"}, "there is no field 'y'");
  refused({.num_classes = 4, .field = "id"}, "field 'id' is i32[]: expected f32");
  refused({.num_classes = 4, .label = "x"}, "field 'x' is f32[3,8,8]: expected i32[], a class");
  refused({.num_classes = 3}, "'label' is 3: expected 0 or more, and less than num_classes = 3");
}

}  // namespace
}  // namespace weft::image_steps_test
