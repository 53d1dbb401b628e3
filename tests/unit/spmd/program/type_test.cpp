#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "spmd/program/element.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::type_test {
namespace {

using testing::expect_error;

constexpr std::array kAllDTypes{DType::pred, DType::i32, DType::u32, DType::i64,
                                DType::bf16, DType::f32, DType::f64};

TEST(DType, NamesParseBack) {
  for (const DType dtype : kAllDTypes) EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  expect_error(Errc::invalid_argument, {"\"f16\"", "bf16, f32, f64"}, [] { parse_dtype("f16"); });
}

TEST(DType, HasByteSizes) {
  const std::array<std::int64_t, 7> sizes{1, 4, 4, 8, 2, 4, 8};
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(byte_size(kAllDTypes[i]), sizes[i]);
}

TEST(DType, TellsFloatingFromInteger) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(is_floating(dtype),
              dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64);
  }
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ((Shape{2, 3}).num_elements(), 6);
  EXPECT_EQ((Shape{2, 0}).num_elements(), 0);
  EXPECT_EQ((Shape{64, 128}).to_string(), "64x128");
  EXPECT_EQ(Shape().to_string(), "");
}

TEST(Shape, RejectsWhatIsNoShape) {
  expect_error(Errc::invalid_argument, {"7 dims", "at most 6"}, [] { Shape{1, 1, 1, 1, 1, 1, 1}; });
  expect_error(Errc::invalid_argument, {"[2,-1]", "size -1"}, [] { Shape{2, -1}; });
  const std::int64_t large = std::int64_t{1} << 30;
  expect_error(Errc::invalid_argument, {"2^53"}, [&] { Shape{large, 0, large}; });
}

TEST(TensorType, PrintsLikeStableHlo) {
  EXPECT_EQ((TensorType{DType::f32, {64, 128}}).to_string(), "f32[64,128]");
  EXPECT_EQ((TensorType{DType::i64, {}}).to_string(), "i64[]");
  EXPECT_EQ((TensorType{DType::bf16, {3, 5}}).bytes(), 30);
}

double through(DType dtype, double value) {
  std::array<std::byte, 8> bytes{};
  store_element(dtype, value, bytes.data());
  return load_element(dtype, bytes.data());
}

TEST(Element, IntegersTruncateAndSaturate) {
  EXPECT_EQ(through(DType::i32, -2.9), -2);
  EXPECT_EQ(through(DType::i32, 1e10), 2147483647.0);
  EXPECT_EQ(through(DType::i32, -1e10), -2147483648.0);
  EXPECT_EQ(through(DType::u32, -1), 0);
  EXPECT_EQ(through(DType::u32, 4294967295.0), 4294967295.0);
  EXPECT_EQ(through(DType::u32, 4294967296.0), 4294967295.0);
  EXPECT_EQ(through(DType::i64, 9223372036854775808.0), 9223372036854775808.0);
  EXPECT_EQ(through(DType::i64, -INFINITY), -9223372036854775808.0);
  EXPECT_EQ(through(DType::i64, 4503599627370497.0), 4503599627370497.0);
  EXPECT_EQ(through(DType::i32, NAN), 0);
  EXPECT_EQ(through(DType::pred, 0.5), 1);
  EXPECT_EQ(through(DType::pred, 0), 0);
}

TEST(Element, FloatsRoundToNearestEven) {
  EXPECT_EQ(through(DType::f32, 0.1), static_cast<double>(0.1F));
  EXPECT_EQ(through(DType::f64, 0.1), 0.1);
  EXPECT_EQ(through(DType::bf16, 1 + 1.0 / 256), 1);                      // tie, even below
  EXPECT_EQ(through(DType::bf16, 1 + 3.0 / 256), 1 + 4.0 / 256);          // tie, even above
  EXPECT_EQ(through(DType::bf16, 1 + 1.0 / 256 + 1e-12), 1 + 2.0 / 256);  // a float would be a tie
  EXPECT_EQ(through(DType::bf16, -(1 + 1.0 / 256 + 1e-12)), -(1 + 2.0 / 256));
  EXPECT_EQ(through(DType::bf16, 1 + 3.0 / 256 - 1e-12), 1 + 2.0 / 256);
  EXPECT_EQ(through(DType::bf16, 1e39), INFINITY);
  EXPECT_EQ(through(DType::bf16, -INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(through(DType::bf16, NAN)));
  EXPECT_TRUE(std::isnan(through(DType::f32, NAN)));
}

TEST(Element, EveryBf16SurvivesTheTrip) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto value = static_cast<double>(std::bit_cast<float>(bits << 16));
    if (std::isnan(value)) continue;
    EXPECT_EQ(through(DType::bf16, value), value) << bits;
  }
}

}  // namespace
}  // namespace weft::type_test
