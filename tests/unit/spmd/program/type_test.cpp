#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <weft/tensor/element.hpp>

#include "spmd/program/element.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::type_test {
namespace {

using testing::expect_error;

constexpr std::array kAllDTypes{DType::pred, DType::i32, DType::u32, DType::i64, DType::bf16,
                                DType::f32,  DType::f64, DType::f16, DType::i8,  DType::u8};

TEST(DType, NamesParseBack) {
  for (const DType dtype : kAllDTypes) EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  expect_error(Errc::invalid_argument, {"\"f8\"", "f64, f16, i8, u8"}, [] { parse_dtype("f8"); });
}

TEST(DType, HasByteSizes) {
  const std::array<std::int64_t, kDTypeCount> sizes{1, 4, 4, 8, 2, 4, 8, 2, 1, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(byte_size(kAllDTypes[i]), sizes[i]);
}

TEST(DType, TellsFloatingFromInteger) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(is_floating(dtype), is_half(dtype) || dtype == DType::f32 || dtype == DType::f64);
    EXPECT_EQ(is_half(dtype), is_floating(dtype) && byte_size(dtype) == 2);
    const bool is_signed = dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64;
    EXPECT_EQ(is_signed_integer(dtype), is_signed);
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
  EXPECT_EQ(through(DType::i8, -128.9), -128);
  EXPECT_EQ(through(DType::i8, -129), -128);
  EXPECT_EQ(through(DType::i8, 200), 127);
  EXPECT_EQ(through(DType::u8, 255.9), 255);
  EXPECT_EQ(through(DType::u8, 256), 255);
  EXPECT_EQ(through(DType::u8, -1), 0);
  EXPECT_EQ(through(DType::pred, 0.5), 1);
  EXPECT_EQ(through(DType::pred, 0), 0);
}

TEST(Element, FloatsRoundToNearestEven) {
  EXPECT_EQ(through(DType::f32, 0.1), static_cast<double>(0.1F));
  EXPECT_EQ(through(DType::f64, 0.1), 0.1);
  EXPECT_EQ(through(DType::bf16, 1 + 1.0 / 256), 1);              // a tie, rounded down to even
  EXPECT_EQ(through(DType::bf16, 1 + 3.0 / 256), 1 + 4.0 / 256);  // a tie, rounded up to even
  // If this number were rounded to float first, it would become a tie.
  EXPECT_EQ(through(DType::bf16, 1 + 1.0 / 256 + 1e-12), 1 + 2.0 / 256);
  EXPECT_EQ(through(DType::bf16, -(1 + 1.0 / 256 + 1e-12)), -(1 + 2.0 / 256));
  EXPECT_EQ(through(DType::bf16, 1 + 3.0 / 256 - 1e-12), 1 + 2.0 / 256);
  EXPECT_EQ(through(DType::bf16, 1e39), INFINITY);
  EXPECT_EQ(through(DType::bf16, -INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(through(DType::bf16, NAN)));
  EXPECT_TRUE(std::isnan(through(DType::f32, NAN)));
}

TEST(Element, HalvesRoundToNearestEven) {
  const double ulp = 0x1p-10;
  EXPECT_EQ(through(DType::f16, 1 + ulp / 2), 1);                // a tie, rounded down to even
  EXPECT_EQ(through(DType::f16, 1 + 3 * ulp / 2), 1 + 2 * ulp);  // a tie, rounded up to even
  // If this number were rounded to float first, it would become a tie.
  EXPECT_EQ(through(DType::f16, 1 + ulp / 2 + 1e-12), 1 + ulp);
  EXPECT_EQ(through(DType::f16, -(1 + ulp / 2 + 1e-12)), -(1 + ulp));
  EXPECT_EQ(through(DType::f16, 65519.99), 65504);
  EXPECT_EQ(through(DType::f16, 65520), INFINITY);
  EXPECT_EQ(through(DType::f16, 0x1p-25), 0);  // a tie, rounded down to even
  EXPECT_EQ(through(DType::f16, 0x1p-25 + 1e-20), 0x1p-24);
  EXPECT_EQ(through(DType::f16, -1e-300), 0);
  EXPECT_TRUE(std::isnan(through(DType::f16, NAN)));
}

/// Compares every f16 with its definition: 1 sign bit, 5 exponent bits and 10 mantissa bits.
TEST(Element, EveryHalfHasItsValueAndSurvivesTheTrip) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const int fraction = static_cast<int>(bits & 1023);
    const double sign = bits >> 15 != 0 ? -1 : 1;
    const auto half = std::bit_cast<F16>(static_cast<std::uint16_t>(bits));
    const double value = load_element(DType::f16, reinterpret_cast<const std::byte*>(&half));
    if (exponent == 31 && fraction != 0) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    const double expected = exponent == 31  ? sign * INFINITY
                            : exponent == 0 ? sign * std::ldexp(fraction, -24)
                                            : sign * std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    ASSERT_EQ(F16(static_cast<float>(value)).bits, bits);
  }
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
