#include <weft/data/image_transforms.hpp>

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include <weft/data/transforms.hpp>

#include "data/items/resample.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::image_transforms_test {
namespace {

using testing::expect_error;

/// Returns a dataset of images whose pixels are numbered across all images.
template <typename T>
DatasetPtr numbered(std::int64_t count, const Shape& shape, const std::string& field = "x") {
  std::vector<T> pixels(static_cast<std::size_t>(count * shape.num_elements()));
  std::iota(pixels.begin(), pixels.end(), T{1});
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  std::iota(labels.begin(), labels.end(), 0);
  return tensors({{field, std::move(pixels), shape}, {"label of " + field, std::move(labels)}});
}

template <typename T>
std::vector<T> read(const Dataset& dataset, const Item& item, std::string_view field = "x") {
  const ItemBuffer buffer = read_item(dataset, item);
  const auto elements = buffer.view().get<T>(field);
  return {elements.begin(), elements.end()};
}

TEST(TransformImages, KeepsOtherFields) {
  const DatasetPtr flipped =
      transform_images(numbered<float>(3, {1, 1, 3}), {RandomHorizontalFlip{.probability = 1}});
  EXPECT_EQ(flipped->fields(),
            (std::vector<Field>{{"x", {DType::f32, {1, 1, 3}}}, {"label of x", {DType::i32, {}}}}));
  EXPECT_EQ(read<float>(*flipped, {.index = 1}), (std::vector<float>{6, 5, 4}));
  EXPECT_EQ(read<std::int32_t>(*flipped, {.index = 2}, "label of x")[0], 2);
}

TEST(TransformImages, CropsEveryPlaceAsOftenAsOthers) {
  const DatasetPtr cropped =
      transform_images(numbered<std::int32_t>(1, {1, 2, 2}),
                       {RandomCrop{.height = 2, .width = 2, .padding = 1, .fill = -7}});
  std::map<std::vector<std::int32_t>, int> seen;
  constexpr int kDraws = 9000;
  for (std::uint64_t epoch = 0; epoch < kDraws; ++epoch) {
    ++seen[read<std::int32_t>(*cropped, {.epoch = epoch})];
  }
  ASSERT_EQ(seen.size(), 9U);
  EXPECT_TRUE(seen.contains({-7, -7, -7, 1}));
  EXPECT_TRUE(seen.contains({1, 2, 3, 4}));
  EXPECT_TRUE(seen.contains({2, -7, 4, -7}));
  EXPECT_TRUE(seen.contains({-7, -7, 1, 2}));
  EXPECT_TRUE(seen.contains({4, -7, -7, -7}));
  for (const auto& [pixels, count] : seen) EXPECT_NEAR(count, kDraws / 9, 150);
}

TEST(TransformImages, LeavesBytesAsBytes) {
  const DatasetPtr flipped = transform_images(
      numbered<std::uint8_t>(2, {1, 2, 3}),
      {RandomHorizontalFlip{.probability = 1}, CenterCrop{.height = 2, .width = 1}});
  EXPECT_EQ(flipped->fields()[0], (Field{"x", {DType::u8, {1, 2, 1}}}));
  EXPECT_EQ(read<std::uint8_t>(*flipped, {.index = 1}), (std::vector<std::uint8_t>{8, 11}));
  EXPECT_THROW((void)transform_images(numbered<std::uint8_t>(2, {1, 2, 3}), {Normalize{}}), Error);
}

TEST(TransformImages, TakesTheMiddle) {
  const DatasetPtr middle =
      transform_images(numbered<float>(1, {2, 4, 4}), {CenterCrop{.height = 2, .width = 1}});
  EXPECT_EQ(read<float>(*middle, {}), (std::vector<float>{7, 11, 23, 27}));
}

TEST(TransformImages, Normalizes) {
  const DatasetPtr normal = transform_images(numbered<float>(1, {2, 1, 2}),
                                             {Normalize{.mean = {1, 3}, .stddev = {2, 0.5F}}});
  EXPECT_EQ(read<float>(*normal, {}), (std::vector<float>{0, 0.5F, 0, 2}));
}

TEST(TransformImages, FlipsAsOftenAsIsAsked) {
  const DatasetPtr flipped =
      transform_images(numbered<float>(1, {1, 1, 2}), {RandomHorizontalFlip{.probability = 0.25}});
  int count = 0;
  for (std::uint64_t epoch = 0; epoch < 4000; ++epoch) {
    if (read<float>(*flipped, {.epoch = epoch})[0] == 2) ++count;
  }
  EXPECT_NEAR(count, 1000, 120);
}

TEST(TransformImages, StepsGoOneAfterTheOther) {
  const DatasetPtr both =
      transform_images(numbered<float>(1, {1, 4, 4}),
                       {RandomResizedCrop{.height = 6, .width = 6, .area = {.area_min = 0.3}},
                        RandomHorizontalFlip{.probability = 1}, CenterCrop{.height = 2, .width = 3},
                        Normalize{.mean = {0}, .stddev = {1}}});
  EXPECT_EQ(both->fields()[0].type, (TensorType{DType::f32, {1, 2, 3}}));
  const auto pixels = read<float>(*both, {});
  EXPECT_EQ(read<float>(*both, {}), pixels);
  EXPECT_GT(pixels[0], pixels[2]);  // mirrored
  EXPECT_LT(pixels[0], pixels[3]);
  for (const float pixel : pixels) EXPECT_TRUE(pixel >= 1 && pixel <= 16) << pixel;
}

TEST(TransformImages, APictureAndItsMaskStayTogether) {
  const std::vector<ImageStep> steps{RandomCrop{.height = 3, .width = 3, .padding = 2},
                                     RandomHorizontalFlip{}};
  const DatasetPtr both =
      zip({transform_images(numbered<float>(1, {1, 4, 5}), steps),
           transform_images(numbered<std::int32_t>(1, {1, 4, 5}, "mask"), steps, "mask")});
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    const auto x = read<float>(*both, {.epoch = epoch});
    const auto mask = read<std::int32_t>(*both, {.epoch = epoch}, "mask");
    EXPECT_TRUE(std::ranges::equal(x, mask)) << epoch;
  }
}

TEST(TransformImages, WhatDoesNotFitIsRefused) {
  const auto refused = [](const ImageStep& step, std::string_view words,
                          const std::string& field = "x") {
    expect_error(Errc::invalid_argument, {words}, [&] {
      (void)transform_images(numbered<std::int32_t>(1, {1, 4, 5}), {step}, field);
    });
  };
  refused(RandomCrop{.height = 5, .width = 5},
          "RandomCrop: height = 5, width = 5: expected 1 to 4");
  refused(RandomCrop{.height = 2, .width = 2, .padding = -1}, "padding = -1");
  refused(RandomCrop{.height = 2, .width = 2, .fill = NAN}, "fill = nan");
  refused(CenterCrop{}, "CenterCrop: height = 0");
  refused(RandomResizedCrop{.height = 2, .width = 2}, "the field is i32; this step needs f32");
  refused(RandomHorizontalFlip{.probability = 2}, "probability = 2");
  refused(RandomHorizontalFlip{}, "field = 'y': expected one of f32, i32 or u8", "y");
  refused(RandomHorizontalFlip{}, "there are: x i32[1,4,5], label of x i32[]", "label of x");
  expect_error(Errc::invalid_argument, {"mean has 2 numbers: expected 1, or 3"}, [] {
    (void)transform_images(numbered<float>(1, {3, 4, 5}), {Normalize{{1, 2}, {1}}});
  });
  expect_error(Errc::invalid_argument, {"there are no steps"}, [] {
    (void)transform_images(numbered<float>(1, {3, 4, 5}), {});
  });
}

TEST(RandomRect, LiesInThePictureWithinItsBounds) {
  const RandomArea area{};
  std::set<double> widths;
  for (std::int64_t i = 0; i < 2000; ++i) {
    ItemRandom random({.index = i});
    const PixelRect rect = random_rect(area, {50, 40}, random);
    ASSERT_TRUE(rect.left >= 0 && rect.top >= 0 && rect.left + rect.width <= 50 &&
                rect.top + rect.height <= 40);
    const double share = rect.width * rect.height / 2000;
    ASSERT_TRUE(share > 0.06 && share <= 1) << share;
    ASSERT_TRUE(rect.width / rect.height > 0.65 && rect.width / rect.height < 1.55);
    widths.insert(rect.width);
  }
  EXPECT_GT(widths.size(), 25U);
  // No area of the image has an allowed ratio, so the middle is taken.
  ItemRandom random({});
  const PixelRect middle = random_rect({.area_min = 1}, {100, 10}, random);
  EXPECT_EQ(middle.width, 13);
  EXPECT_EQ(middle.height, 10);
  EXPECT_EQ(middle.left, 43);
}

TEST(Resample, KeepsWhatHasOneColour) {
  const std::vector<float> pixels(35, 0.75F);
  for (const PixelSize size : {PixelSize{3, 2}, PixelSize{7, 5}, PixelSize{20, 11}}) {
    std::vector<float> out(static_cast<std::size_t>(size.width * size.height));
    const ChannelOut channel{.data = out.data(), .row_stride = size.width};
    resample(Pixels<float>{pixels.data(), {7, 5}}, {.rect = {0.3, 0.1, 6.2, 4.9}, .scaled = size},
             size, {&channel, 1});
    for (const float pixel : out) EXPECT_NEAR(pixel, 0.75F, 1e-6);
  }
}

TEST(Resample, OfTheSameSizeIsACopy) {
  std::vector<float> pixels(35);
  std::iota(pixels.begin(), pixels.end(), 0.0F);
  std::vector<float> out(35);
  const ChannelOut channel{.data = out.data(), .row_stride = 7};
  resample(Pixels<float>{pixels.data(), {7, 5}}, {.rect = {0, 0, 7, 5}, .scaled = {7, 5}}, {7, 5},
           {&channel, 1});
  EXPECT_EQ(out, pixels);
}

}  // namespace
}  // namespace weft::image_transforms_test
