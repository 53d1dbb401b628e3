#include <weft/data/image_files.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "data/images/picture.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::decode_image_test {
namespace {

using testing::expect_error;

std::string picture(const std::string& name) { return testing::read_golden("pictures/" + name); }
std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file));
}

/// The pixels that Pillow computed in tests/golden/pictures, as [height, width, 3] or [height,
/// width].
struct Expected {
  Shape shape;
  std::vector<std::int32_t> values;

  explicit Expected(const std::string& name) {
    for (const std::string file : {"expected.npz", "more.npz"}) {
      const DatasetPtr all = npz_file(testing::golden_path("pictures/" + file).string());
      const auto field = std::ranges::find(all->fields(), name, &Field::name);
      if (field == all->fields().end()) continue;
      shape = field->type.shape;
      const ItemBuffer buffer = read_item(*all, {});
      const ItemView item = buffer.view();
      const auto copy = [&](const auto& elements) {
        values.assign(elements.begin(), elements.end());
      };
      if (field->type.dtype == DType::u8) {
        copy(item.get<std::uint8_t>(name));
      } else {
        copy(item.get<std::int32_t>(name));
      }
    }
  }
  std::int32_t at(std::int64_t channel, std::int64_t y, std::int64_t x) const {
    const std::int64_t channels = shape.size() == 3 ? shape[2] : 1;
    return values[static_cast<std::size_t>((y * shape[1] + x) * channels + channel)];
  }
};

ImageField as_i32(std::int64_t height, std::int64_t width, int channels = 3) {
  return {.height = height, .width = width, .channels = channels, .dtype = DType::i32};
}

template <typename T>
std::vector<T> decode(const std::string& file, const ImageField& image, const Item& item = {}) {
  std::vector<T> pixels(static_cast<std::size_t>(field_of(image).type.num_elements()));
  ItemRandom random(item);
  decode_image(bytes_of(file), image, random, std::as_writable_bytes(std::span(pixels)));
  return pixels;
}

/// Returns the largest difference of a decoded image from Pillow's pixels.
int difference(const std::string& file, const ImageField& image, const std::string& name) {
  const Expected expected(name);
  EXPECT_EQ(expected.shape[0], image.height) << name;
  EXPECT_EQ(expected.shape[1], image.width) << name;
  const auto found = decode<std::int32_t>(picture(file), image);
  int largest = 0;
  std::size_t i = 0;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = 0; y < image.height; ++y) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        largest = std::max(largest, std::abs(found[i++] - expected.at(c, y, x)));
      }
    }
  }
  return largest;
}

TEST(DecodeImage, GivesThePixelsThatPillowGives) {
  for (const std::string name :
       {"rgb.png", "rgba.png", "gray.png", "gray_alpha.png", "one_bit.png", "palette.png",
        "interlaced.png", "rgb16.png", "baseline.jpg", "progressive.jpg", "gray.jpg"}) {
    EXPECT_EQ(difference(name, as_i32(16, 24), name), 0) << name;
  }
  // Pillow rounds the conversion from CMYK differently.
  EXPECT_LE(difference("cmyk.jpg", as_i32(16, 24), "cmyk.jpg"), 1);
}

TEST(DecodeImage, MakesGrayOfColoursAsPillowDoes) {
  EXPECT_EQ(difference("rgb.png", as_i32(16, 24, 1), "luma"), 0);
  EXPECT_EQ(difference("rgb16.png", as_i32(16, 24, 1), "luma"), 0);
  // The golden pixels are from a PNG; compression as JPEG has changed the colors.
  EXPECT_LE(difference("cmyk.jpg", as_i32(16, 24, 1), "luma"), 10);
  EXPECT_LE(difference("progressive.jpg", as_i32(16, 24, 1), "luma"), 10);
}

TEST(DecodeImage, ChangesSizesAsTorchvisionDoes) {
  // Pillow rounds to bytes after it has resized one direction.
  EXPECT_LE(difference("rgb.png", as_i32(8, 8), "cover"), 1);
  ImageField by_side = as_i32(8, 8);
  by_side.short_side = 10;
  EXPECT_LE(difference("rgb.png", by_side, "short_side"), 1);
  ImageField filled = as_i32(30, 40);
  filled.fit = ImageFit::fill;
  EXPECT_LE(difference("rgb.png", filled, "enlarged"), 1);
}

TEST(DecodeImage, GivesBytesThatAreTheIntegers) {
  ImageField image = as_i32(16, 24);
  const auto integers = decode<std::int32_t>(picture("rgb.png"), image);
  image.dtype = DType::u8;
  const auto bytes = decode<std::uint8_t>(picture("rgb.png"), image);
  EXPECT_TRUE(std::ranges::equal(bytes, integers));
  EXPECT_GT(std::ranges::max(bytes), 127);
  image.mean = {0.5F};
  testing::expect_error(Errc::invalid_argument, {"dtype = u8 with mean or stddev"},
                        [&] { (void)field_of(image); });
}

TEST(DecodeImage, ContainedPicturesLieBetweenBars) {
  ImageField image{.height = 24, .width = 24, .mean = {0.5F}, .stddev = {0.25F}};
  image.fit = ImageFit::contain;
  const auto pixels = decode<float>(picture("rgb.png"), image);
  const Expected expected("rgb.png");
  for (std::int64_t y = 0; y < 24; ++y) {
    for (std::int64_t x = 0; x < 24; ++x) {
      const bool is_bar = y < 4 || y >= 20;
      const float value = is_bar ? 0 : static_cast<float>(expected.at(1, y - 4, x)) / 255;
      EXPECT_NEAR(pixels[static_cast<std::size_t>((24 + y) * 24 + x)], (value - 0.5F) / 0.25F, 1e-5)
          << y << ", " << x;
    }
  }
}

TEST(DecodeImage, NormalizesEachChannel) {
  const ImageField image{.height = 16,
                         .width = 24,
                         .mean = {0.485F, 0.456F, 0.406F},
                         .stddev = {0.229F, 0.224F, 0.225F}};
  for (const std::string name : {"rgb.png", "gray.png"}) {
    const auto pixels = decode<float>(picture(name), image);
    const Expected expected(name);
    for (std::int64_t c = 0; c < 3; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      EXPECT_NEAR(pixels[channel * 16 * 24 + 24 + 5],
                  (static_cast<float>(expected.at(c, 1, 5)) / 255 - image.mean[channel]) /
                      image.stddev[channel],
                  1e-5);
    }
  }
  ImageField half = image;
  half.dtype = DType::f16;
  EXPECT_EQ(static_cast<float>(decode<F16>(picture("rgb.png"), half)[7]),
            static_cast<float>(F16(decode<float>(picture("rgb.png"), image)[7])));
  half.dtype = DType::bf16;
  const auto halves = decode<Bf16>(picture("rgb.png"), half);
  EXPECT_EQ(static_cast<float>(halves[7]),
            static_cast<float>(Bf16(decode<float>(picture("rgb.png"), image)[7])));
}

TEST(DecodeImage, ShrinksLargeJpegsWhileTheyAreDecoded) {
  const std::string file = picture("large.jpg");
  EXPECT_EQ(picture_size(bytes_of(file)), (PixelSize{200, 120}));
  EXPECT_EQ(decode_picture(bytes_of(file), false, 8).size, (PixelSize{25, 15}));
  EXPECT_EQ(decode_picture(bytes_of(file), true, 2).channels, 1);
  ImageField image = as_i32(12, 20);
  image.fit = ImageFit::fill;
  // The decoder averages blocks of 8 by 8 pixels before the filter is applied. At an edge the
  // result depends on 28 pixels, not on 20 as Pillow's does.
  EXPECT_LE(difference("large.jpg", image, "shrunk"), 24);
}

TEST(DecodeImage, TakesRandomAreasOfTheItem) {
  ImageField image = as_i32(8, 8);
  image.random_area = RandomArea{};
  const std::string file = picture("rgb.png");
  const auto first = decode<std::int32_t>(file, image, {.index = 1});
  EXPECT_EQ(decode<std::int32_t>(file, image, {.index = 1}), first);
  EXPECT_NE(decode<std::int32_t>(file, image, {.index = 2}), first);
  EXPECT_NE(decode<std::int32_t>(file, image, {.index = 1, .epoch = 1}), first);

  const Expected expected("area");  // an area of 14 by 11 pixels that begins at (3, 2)
  const Picture whole = decode_picture(bytes_of(file), false, 1);
  std::vector<float> pixels(3 * 64);
  const std::array<ChannelOut, 3> out{
      {{pixels.data(), 8}, {pixels.data() + 64, 8}, {pixels.data() + 128, 8}}};
  resample(whole.pixels(), {.rect = {3, 2, 14, 11}, .scaled = {8, 8}}, {8, 8}, out);
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(pixels[static_cast<std::size_t>(c * 64 + i)], expected.at(c, i / 8, i % 8), 1.01);
    }
  }
}

TEST(DecodeImage, GivesThePixelsOfWebpThatPillowGives) {
  for (const std::string name : {"lossless.webp", "alpha.webp"}) {
    EXPECT_EQ(difference(name, as_i32(16, 24), name), 0) << name;
  }
  EXPECT_LE(difference("lossy.webp", as_i32(16, 24), "lossy.webp"), 1);
  EXPECT_EQ(decode_picture(bytes_of(picture("lossless.webp")), true, 1).channels, 1);
  expect_error(Errc::version, {"WebP: is animated"},
               [] { (void)decode<std::int32_t>(picture("animated.webp"), as_i32(16, 24)); });
}

TEST(DecodeImage, TurnsPicturesAsTheirExifDataSay) {
  for (int number = 1; number <= 8; ++number) {
    const std::string name = fmt::format("turned{}.jpg", number);
    const bool is_sideways = number > 4;
    const ImageField image = is_sideways ? as_i32(24, 16) : as_i32(16, 24);
    EXPECT_LE(difference(name, image, name), 1) << name;
  }
  EXPECT_EQ(difference("turned.webp", as_i32(24, 16), "turned.webp"), 0);
  EXPECT_EQ(difference("turned.png", as_i32(24, 16), "turned.png"), 0);
  // With the option off, the image is read as it is stored, as torchvision reads it.
  ImageField stored = as_i32(16, 24);
  stored.exif_orientation = false;
  EXPECT_EQ(decode<std::int32_t>(picture("turned6.jpg"), stored),
            decode<std::int32_t>(picture("turned1.jpg"), stored));
}

TEST(DecodeImage, DamagedExifDataLeavePicturesAsTheyAre) {
  const std::string whole = picture("turned6.jpg");
  const std::size_t exif = whole.find("Exif");
  const auto upright = decode<std::int32_t>(picture("turned1.jpg"), as_i32(16, 24));
  const std::size_t bytes = static_cast<unsigned char>(whole[exif - 1]);  // bytes of the segment
  for (std::size_t i = exif; i < exif - 2 + bytes; ++i) {
    for (const char flip : {'\x01', '\x5a', '\xff'}) {
      std::string file = whole;
      file[i] = static_cast<char>(file[i] ^ flip);
      EXPECT_EQ(decode<std::int32_t>(file, as_i32(24, 16)).size(), upright.size()) << i;
    }
  }
  std::string none = whole;
  none.replace(exif, 4, "Xxif");
  EXPECT_EQ(decode<std::int32_t>(none, as_i32(16, 24)), upright);
}

TEST(DecodeImage, SixteenBitsAreKeptInFloatsAndRoundedInOthers) {
  const Expected expected("gray16.png");
  ImageField image{.height = 16, .width = 24, .channels = 1};
  const auto floats = decode<float>(picture("gray16.png"), image);
  image.dtype = DType::i32;
  const auto integers = decode<std::int32_t>(picture("gray16.png"), image);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    EXPECT_NEAR(floats[i] * 65535, static_cast<float>(expected.values[i]), 0.02F);
    EXPECT_EQ(integers[i], (expected.values[i] * 255 + 32767) / 65535) << expected.values[i];
  }
  image = {.height = 16, .width = 24};
  image.mean = {0.5F};
  image.stddev = {0.25F};
  const auto colours = decode<float>(picture("rgb16.png"), image);
  EXPECT_NEAR(colours[5], decode<float>(picture("rgb.png"), image)[5], 1e-5);
}

TEST(DecodeImage, EveryCutIsCorrupt) {
  for (const std::string name : {"baseline.jpg", "progressive.jpg", "cmyk.jpg", "rgb.png",
                                 "interlaced.png", "palette.png", "lossless.webp", "lossy.webp"}) {
    const std::string file = picture(name);
    for (std::size_t size = 0; size < file.size(); ++size) {
      SCOPED_TRACE(fmt::format("{} cut to {} of {}", name, size, file.size()));
      expect_error(Errc::corrupt, {},
                   [&] { (void)decode<std::int32_t>(file.substr(0, size), as_i32(16, 24)); });
    }
  }
}

TEST(DecodeImage, NeverCrashesOnFlippedBytes) {
  int refused = 0;
  for (const std::string name : {"baseline.jpg", "progressive.jpg", "palette.png", "rgb16.png",
                                 "lossy.webp", "turned.webp", "turned.png"}) {
    const std::string whole = picture(name);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string file = whole;
      file[i] = static_cast<char>(file[i] ^ 0x5a);
      try {
        (void)decode<std::int32_t>(file, as_i32(16, 24));
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::version)
            << name << ", byte " << i << ": " << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(DecodeImage, SizesAreBoundedByTheFile) {
  std::string png = picture("rgb.png");
  png[18] = '\x40';  // adds 2^14 to the width
  expect_error(Errc::corrupt, {"PNG"},
               [&] { (void)decode<std::int32_t>(png, as_i32(16, 24)); });  // the checksum is wrong
  std::string jpeg = picture("baseline.jpg");
  const std::size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\x3f\xff\x3f\xff");
  expect_error(Errc::corrupt, {"16383 by 16383 pixels", "at most 134217728"},
               [&] { (void)decode<std::int32_t>(jpeg, as_i32(16, 24)); });
  jpeg.replace(frame + 5, 4, "\x0f\xff\x0f\xff");
  expect_error(Errc::corrupt, {"4095 by 4095 pixels in 799 bytes", "cut off"},
               [&] { (void)decode<std::int32_t>(jpeg, as_i32(16, 24)); });
}

TEST(DecodeImage, OtherFormatsAreNamed) {
  const auto refused = [](const std::string& file, std::string_view words) {
    expect_error(Errc::corrupt, {words}, [&] { (void)decode<std::int32_t>(file, as_i32(2, 2)); });
  };
  refused("GIF89a...", "is GIF: expected JPEG, PNG or WebP");
  refused("RIFF....WEBPVP8", "WebP: ends too early");
  refused("RIFF....WAVE", "12 bytes that are neither JPEG nor PNG nor WebP");
}

TEST(DecodeImage, OptionsThatContradictAreRefused) {
  const auto refused = [](const ImageField& image, std::string_view words) {
    expect_error(Errc::invalid_argument, {words}, [&] { (void)field_of(image); });
  };
  refused({.height = 0}, "height = 0");
  refused({.channels = 4}, "channels = 4: expected 1 or 3");
  refused({.dtype = DType::i64}, "dtype = i64");
  refused({.dtype = DType::i32, .mean = {0.5F}}, "i32 with mean or stddev");
  refused({.mean = {1, 2}}, "mean has 2 numbers: expected 1, or 3");
  refused({.stddev = {0}}, "stddev has 0: expected numbers above 0");
  refused({.short_side = 200}, "short_side = 200: expected at least height and width");
  refused({.fit = ImageFit::fill, .short_side = 300}, "0; short_side works only with fit = cover");
  refused({.random_area = RandomArea{.area_min = 0}}, "area_min = 0");
  refused({.random_area = RandomArea{.ratio_min = 2}}, "ratio_min = 2");
  expect_error(Errc::invalid_argument, {"memory has 5 bytes", "i32[3,2,2] needs 48"}, [] {
    std::array<std::byte, 5> few;
    ItemRandom random{Item{}};
    decode_image({}, as_i32(2, 2), random, few);
  });
}

}  // namespace
}  // namespace weft::decode_image_test
