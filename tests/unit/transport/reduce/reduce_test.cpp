#include "transport/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <weft/tensor/element.hpp>

namespace weft::reduce_test {
namespace {

template <typename T>
std::vector<T> reduced(ReduceKind kind, DType dtype, std::vector<std::vector<T>> values) {
  std::vector<std::byte*> bases;
  for (std::vector<T>& chip : values) bases.push_back(reinterpret_cast<std::byte*>(chip.data()));
  std::vector<T> result(values[0].size());
  std::byte* const destination[] = {reinterpret_cast<std::byte*>(result.data())};
  reduce(kind, dtype, {bases, 0}, {destination, 0}, static_cast<std::int64_t>(result.size()));
  return result;
}

TEST(Reduce, AddsInTheOrderOfTheSources) {
  EXPECT_EQ(reduced<float>(ReduceKind::add, DType::f32, {{1e8F}, {1}, {-1e8F}}),
            std::vector<float>{0});  // 1e8 + 1 rounds to 1e8 in f32
  EXPECT_EQ(reduced<float>(ReduceKind::add, DType::f32, {{1e8F}, {-1e8F}, {1}}),
            std::vector<float>{1});
}

TEST(Reduce, RoundsBf16OnceAndToEven) {
  const auto bf16 = [](float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  };
  // 256 + 1 is midway between 256 and 258 and rounds to 256, which is even. 256 + 1 + 1 is 258 only
  // if the partial sum isn't rounded.
  EXPECT_EQ(reduced<std::uint16_t>(ReduceKind::add, DType::bf16, {{bf16(256)}, {bf16(1)}}),
            std::vector{bf16(256)});
  EXPECT_EQ(
      reduced<std::uint16_t>(ReduceKind::add, DType::bf16, {{bf16(256)}, {bf16(1)}, {bf16(1)}}),
      std::vector{bf16(258)});
  EXPECT_EQ(reduced<std::uint16_t>(ReduceKind::add, DType::bf16, {{bf16(258)}, {bf16(1)}}),
            std::vector{bf16(260)});
}

TEST(Reduce, KeepsANanOfBf16ANan) {
  const std::vector<std::uint16_t> result =
      reduced<std::uint16_t>(ReduceKind::max, DType::bf16, {{0x7f81}, {0x3f80}});
  EXPECT_GT(result[0] & 0x7fffU, 0x7f80U);
}

TEST(Reduce, OverflowsBf16ToInfinity) {
  EXPECT_EQ(reduced<std::uint16_t>(ReduceKind::add, DType::bf16, {{0x7f7f}, {0x7f7f}}),
            std::vector<std::uint16_t>{0x7f80});
}

TEST(Reduce, RoundsF16OnceAndToEven) {
  const auto f16 = [](float value) { return F16(value).bits; };
  const auto sum = [](std::vector<std::vector<std::uint16_t>> values) {
    return reduced<std::uint16_t>(ReduceKind::add, DType::f16, std::move(values));
  };
  // 2048 + 1 is midway between 2048 and 2050.
  EXPECT_EQ(sum({{f16(2048)}, {f16(1)}}), std::vector{f16(2048)});
  EXPECT_EQ(sum({{f16(2048)}, {f16(1)}, {f16(1)}}), std::vector{f16(2050)});
  EXPECT_EQ(sum({{f16(65504)}, {f16(65504)}}), std::vector<std::uint16_t>{0x7c00});
  EXPECT_EQ(sum({{0x0001}, {0x0001}}), std::vector<std::uint16_t>{0x0002});  // a subnormal number
}

/// The sum over one chip is its element; a NaN becomes a quiet NaN.
TEST(Reduce, ReadsAndWritesEveryF16WithEveryInstructionSet) {
  std::vector<std::uint16_t> values(65536);
  std::iota(values.begin(), values.end(), std::uint16_t{0});
  for (const InstructionSet set : instruction_sets()) {
    std::vector<std::uint16_t> result(values.size());
    std::byte* const source[] = {reinterpret_cast<std::byte*>(values.data())};
    std::byte* const destination[] = {reinterpret_cast<std::byte*>(result.data())};
    reduce(set, ReduceKind::add, DType::f16, {source, 0}, {destination, 0}, 65536);
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const bool is_nan = (bits & 0x7fffU) > 0x7c00U;
      ASSERT_EQ(result[bits], is_nan ? bits | 0x200U : bits) << to_string(set);
      ASSERT_EQ(F16(static_cast<float>(std::bit_cast<F16>(values[bits]))).bits, result[bits]);
    }
  }
}

TEST(Reduce, LetsANanWinAMaxAndAMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min}) {
    for (const float result :
         reduced<float>(kind, DType::f32, {{nan, 1, 2}, {1, nan, 3}, {2, 2, nan}})) {
      EXPECT_TRUE(std::isnan(result));
    }
  }
}

TEST(Reduce, WrapsIntegers) {
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(reduced<std::int32_t>(ReduceKind::add, DType::i32, {{kMax}, {1}}), std::vector{kMin});
  constexpr auto kMax64 = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(reduced<std::int64_t>(ReduceKind::add, DType::i64, {{kMax64}, {1}}),
            std::vector{std::numeric_limits<std::int64_t>::min()});
  EXPECT_EQ(reduced<std::uint32_t>(ReduceKind::add, DType::u32, {{0xffffffffU}, {2}}),
            std::vector<std::uint32_t>{1});
  EXPECT_EQ(reduced<std::int8_t>(ReduceKind::add, DType::i8, {{127}, {1}}),
            std::vector<std::int8_t>{-128});
  EXPECT_EQ(reduced<std::uint8_t>(ReduceKind::add, DType::u8, {{200}, {100}}),
            std::vector<std::uint8_t>{44});
}

TEST(Reduce, ComparesIntegersByTheirSign) {
  EXPECT_EQ(reduced<std::int32_t>(ReduceKind::max, DType::i32, {{-1}, {1}}), std::vector{1});
  EXPECT_EQ(reduced<std::int8_t>(ReduceKind::max, DType::i8, {{-1}, {1}}),
            std::vector<std::int8_t>{1});
  EXPECT_EQ(reduced<std::uint8_t>(ReduceKind::max, DType::u8, {{255}, {1}}),
            std::vector<std::uint8_t>{255});
  EXPECT_EQ(reduced<std::uint32_t>(ReduceKind::max, DType::u32, {{0xffffffffU}, {1}}),
            std::vector<std::uint32_t>{0xffffffffU});
}

TEST(Reduce, TakesMaxOfPredAsAnyAndMinAsAll) {
  EXPECT_EQ(reduced<std::uint8_t>(ReduceKind::max, DType::pred, {{0, 0, 1}, {0, 1, 1}}),
            (std::vector<std::uint8_t>{0, 1, 1}));
  EXPECT_EQ(reduced<std::uint8_t>(ReduceKind::min, DType::pred, {{0, 0, 1}, {0, 1, 1}}),
            (std::vector<std::uint8_t>{0, 0, 1}));
}

TEST(Reduce, WritesEveryDestinationInPlace) {
  constexpr std::int64_t kCount = 2500;  // more than two blocks
  std::vector<std::vector<double>> chips(3, std::vector<double>(kCount + 8));
  std::vector<std::byte*> bases;
  for (std::size_t q = 0; q < chips.size(); ++q) {
    for (std::size_t i = 0; i < chips[q].size(); ++i) {
      chips[q][i] = static_cast<double>(1000 * q + i);
    }
    bases.push_back(reinterpret_cast<std::byte*>(chips[q].data()));
  }
  reduce(ReduceKind::add, DType::f64, {bases, 4 * sizeof(double)}, {bases, 4 * sizeof(double)},
         kCount);
  for (std::size_t q = 0; q < chips.size(); ++q) {
    for (std::size_t i = 0; i < chips[q].size(); ++i) {
      const bool within = i >= 4 && i < kCount + 4;
      ASSERT_EQ(chips[q][i],
                within ? 3000 + 3 * static_cast<double>(i) : static_cast<double>(1000 * q + i))
          << q << " " << i;
    }
  }
}

/// Returns arenas of random bits, in which every kind of number occurs, except NaN, because
/// hardware may return either of two NaNs.
std::vector<std::vector<std::byte>> random_arenas(DType dtype, std::size_t num_arenas,
                                                  std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::byte>> arenas(num_arenas, std::vector<std::byte>(bytes));
  for (std::vector<std::byte>& arena : arenas) {
    for (std::byte& byte : arena) {
      byte = static_cast<std::byte>(dtype == DType::pred ? random() % 2 : random() % 256);
    }
    const auto clear_exponent_bit = [&arena](std::size_t element_bytes, std::byte bit) {
      for (std::size_t i = element_bytes - 1; i < arena.size(); i += element_bytes) {
        arena[i] &= ~bit;
      }
    };
    if (is_floating(dtype)) {
      clear_exponent_bit(static_cast<std::size_t>(byte_size(dtype)), std::byte{0x40});
    }
  }
  return arenas;
}

constexpr DType kDTypes[] = {DType::pred, DType::i32, DType::u32, DType::i64, DType::bf16,
                             DType::f32,  DType::f64, DType::f16, DType::i8,  DType::u8};
constexpr ReduceKind kReduceKinds[] = {ReduceKind::add, ReduceKind::max, ReduceKind::min};

TEST(Reduce, GivesTheSameBitsOf16Bytes) {
  std::uint64_t seed = 0;
  for (const DType dtype : kDTypes) {
    const std::int64_t count = 16 / byte_size(dtype);
    for (const std::size_t num_arenas : {1U, 2U, 3U, 16U}) {
      for (int i = 0; i < 20; ++i) {
        auto arenas = random_arenas(dtype, num_arenas, 16, ++seed);
        std::vector<std::byte*> sources;
        for (std::vector<std::byte>& arena : arenas) sources.push_back(arena.data());
        for (const ReduceKind kind : kReduceKinds) {
          std::vector<std::byte> expected(16);
          std::byte* const destination[] = {expected.data()};
          reduce(kind, dtype, {sources, 0}, {destination, 0}, count);
          const Bytes16 result = reduce_loop_16(kind, dtype)(sources.data(), num_arenas);
          ASSERT_EQ(std::memcmp(&result, expected.data(), sizeof result), 0)
              << to_string(dtype) << " of " << num_arenas << ", seed " << seed;
        }
      }
    }
  }
}

TEST(Reduce, GivesTheSameBitsWithEveryInstructionSet) {
  constexpr std::size_t kBytes = 1 << 13;
  const auto run = [&](InstructionSet set, ReduceKind kind, DType dtype,
                       std::vector<std::vector<std::byte>> arenas, std::int64_t count,
                       bool everywhere) {
    std::vector<std::byte*> bases;
    for (std::vector<std::byte>& arena : arenas) bases.push_back(arena.data());
    const std::span<std::byte* const> all = bases;
    // Elements at this offset aren't aligned for vectors.
    const auto offset = static_cast<std::size_t>(3 * byte_size(dtype));
    reduce(set, kind, dtype, {all, offset}, {everywhere ? all : all.last(1), offset}, count);
    return arenas;
  };
  std::uint64_t seed = 0;
  for (const DType dtype : kDTypes) {
    for (const std::size_t num_arenas : {1U, 2U, 3U, 16U}) {
      for (const std::int64_t count : {0, 1, 2, 7, 15, 16, 17, 31, 33, 64, 127, 129, 515}) {
        const auto arenas = random_arenas(dtype, num_arenas, kBytes, ++seed);
        for (const ReduceKind kind : kReduceKinds) {
          for (const bool everywhere : {false, true}) {
            const auto expected =
                run(InstructionSet::portable, kind, dtype, arenas, count, everywhere);
            for (const InstructionSet set : instruction_sets()) {
              ASSERT_EQ(run(set, kind, dtype, arenas, count, everywhere), expected)
                  << to_string(set) << " " << to_string(kind) << " " << to_string(dtype) << " of "
                  << num_arenas << " x " << count << ", seed " << seed;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::reduce_test
