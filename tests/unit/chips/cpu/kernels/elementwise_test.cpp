#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "chips/cpu/kernels/elementwise.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "spmd/ops/row.hpp"
#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::elementwise_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr std::array kFloating{DType::f32, DType::bf16, DType::f16, DType::f64};
constexpr std::array kIntegers{DType::i32, DType::u32, DType::i64, DType::i8, DType::u8};
constexpr std::array kNumeric{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                              DType::u32, DType::i64,  DType::i8,  DType::u8};
constexpr std::array kAll{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                          DType::u32, DType::i64,  DType::i8,  DType::u8,  DType::pred};

/// The number of elements is odd, so that loops have a remainder after their last vector.
const Shape kShape{7, 13};

Elements apply(DType dtype, const Elements& x, auto&& op) {
  KernelCase test;
  const ValueId value = test.input({dtype, {static_cast<std::int64_t>(x.size())}}, x);
  test.output(op(test.build, value));
  return run_kernels(test).at(0);
}

Elements f32(OpKind kind, const Elements& x) {
  return apply(DType::f32, x,
               [kind](Builder& build, ValueId value) { return build.unary(kind, value); });
}

void expect_unary(OpKind kind, DType dtype, double low, double high) {
  SCOPED_TRACE(fmt::format("{} of {}", to_string(kind), to_string(dtype)));
  std::mt19937 random(1);
  KernelCase test;
  test.output(test.build.unary(kind, test.input({dtype, kShape}, random, low, high)));
  expect_near(test, 4 * epsilon(dtype));
}

void expect_binary(OpKind kind, DType dtype, double low, double high) {
  SCOPED_TRACE(fmt::format("{} of {}", to_string(kind), to_string(dtype)));
  std::mt19937 random(1);
  KernelCase test;
  const ValueId a = test.input({dtype, kShape}, random, low, high);
  const ValueId b = test.input({dtype, kShape}, random, low, high);
  test.output(test.build.binary(kind, a, b));
  expect_near(test, 4 * epsilon(dtype));
}

TEST(Elementwise, UnaryAgreesWithTheInterpreter) {
  for (const DType dtype : kFloating) {
    for (const OpKind kind :
         {OpKind::negate, OpKind::sign, OpKind::abs, OpKind::exponential, OpKind::tanh,
          OpKind::logistic, OpKind::softplus, OpKind::erf, OpKind::exponential_minus_one,
          OpKind::floor, OpKind::ceil, OpKind::round_nearest_even}) {
      expect_unary(kind, dtype, -8, 8);
    }
    expect_unary(OpKind::log_plus_one, dtype, -0.9, 100);
    expect_unary(OpKind::tan, dtype, -1.2, 1.2);
    expect_binary(OpKind::atan2, dtype, -8, 8);
    for (const OpKind kind : {OpKind::log, OpKind::sqrt, OpKind::rsqrt}) {
      expect_unary(kind, dtype, 0.1, 100);
    }
  }
  for (const DType dtype : {DType::i32, DType::i64, DType::i8}) {
    for (const OpKind kind : {OpKind::negate, OpKind::sign, OpKind::abs}) {
      expect_unary(kind, dtype, -9, 9);
    }
  }
}

TEST(Elementwise, BinaryAgreesWithTheInterpreter) {
  for (const DType dtype : kNumeric) {
    const bool is_unsigned = dtype == DType::u32 || dtype == DType::u8;
    const double low = is_unsigned ? 20 : -20;
    for (const OpKind kind : {OpKind::add, OpKind::multiply, OpKind::maximum, OpKind::minimum}) {
      expect_binary(kind, dtype, low, 40);
    }
    expect_binary(OpKind::divide, dtype, 1, 100);
    expect_binary(OpKind::power, dtype, 1, 5);
    expect_binary(OpKind::subtract, dtype, low, 40);
    expect_binary(OpKind::remainder, dtype, 1, 100);
  }
}

TEST(Elementwise, CompareAgreesWithTheInterpreter) {
  for (const DType dtype : kAll) {
    for (int direction = 0; direction <= static_cast<int>(CompareDirection::ge); ++direction) {
      SCOPED_TRACE(fmt::format("direction {} of {}", direction, to_string(dtype)));
      std::mt19937 random(1);
      KernelCase test;
      const double high = dtype == DType::pred ? 1 : 3;
      const ValueId a = test.input({dtype, kShape}, random, 0, high, true);
      const ValueId b = test.input({dtype, kShape}, random, 0, high, true);
      test.output(test.build.compare(static_cast<CompareDirection>(direction), a, b));
      expect_exact(test);
    }
  }
}

TEST(Elementwise, SelectAndLogicalAndAgreeWithTheInterpreter) {
  for (const DType dtype : kAll) {
    SCOPED_TRACE(to_string(dtype));
    std::mt19937 random(1);
    KernelCase test;
    const ValueId p = test.input({DType::pred, kShape}, random, 0, 1);
    const ValueId q = test.input({DType::pred, kShape}, random, 0, 1);
    const ValueId a = test.input({dtype, kShape}, random, 0, 1);
    const ValueId b = test.input({dtype, kShape}, random, 0, 1);
    test.output(test.build.select(test.build.binary(OpKind::logical_and, p, q), a, b));
    expect_exact(test);
  }
}

TEST(Elementwise, ConvertAgreesWithTheInterpreter) {
  for (const DType from : kAll) {
    for (const DType to : kAll) {
      SCOPED_TRACE(fmt::format("{} to {}", to_string(from), to_string(to)));
      std::mt19937 random(1);
      KernelCase test;
      const ValueId x = test.input({from, kShape}, random, -100, 100);
      test.output(test.build.convert(x, to));
      expect_near(test, epsilon(to));
    }
  }
}

TEST(Elementwise, ConvertToIntegersSaturatesAndTakesNanForZero) {
  const Elements extremes{kNaN, kInfinity, -kInfinity, 1e30, -1e30, 2147483520, -1.9, 1.9, -0.0};
  for (const DType from : kFloating) {
    for (const DType to : kIntegers) {
      SCOPED_TRACE(fmt::format("{} to {}", to_string(from), to_string(to)));
      KernelCase test;
      const ValueId x = test.input({from, {static_cast<std::int64_t>(extremes.size())}}, extremes);
      test.output(test.build.convert(x, to));
      expect_exact(test);
    }
  }
}

TEST(Elementwise, Bf16RoundsToNearestEvenAndKeepsNan) {
  const double ulp = 1.0 / 128;  // for numbers from 1 to 2
  const auto to_bf16 = [](Builder& build, ValueId x) { return build.convert(x, DType::bf16); };
  const Elements rounded =
      apply(DType::f32, {1 + ulp / 2, 1 + 3 * ulp / 2, 1 + 0.51 * ulp, kNaN, -kInfinity}, to_bf16);
  EXPECT_EQ(rounded[0], 1);
  EXPECT_EQ(rounded[1], 1 + 2 * ulp);
  EXPECT_EQ(rounded[2], 1 + ulp);
  EXPECT_TRUE(std::isnan(rounded[3]));
  EXPECT_EQ(rounded[4], -kInfinity);
}

TEST(Elementwise, F16RoundsToNearestEvenAtEveryMagnitude) {
  const double ulp = 0x1p-10;    // for numbers from 1 to 2
  const double least = 0x1p-24;  // the smallest subnormal number
  const auto to_f16 = [](Builder& build, ValueId x) { return build.convert(x, DType::f16); };
  const Elements x{
      1 + ulp / 2, 1 + 3 * ulp / 2, 1 + 0.51 * ulp, 65504,          65519,      65520, -1e30,
      least,       least / 2,       1.5 * least,    0x1p-14 - 1e-9, -kInfinity, -0.0};
  EXPECT_EQ(apply(DType::f32, x, to_f16),
            (Elements{1, 1 + 2 * ulp, 1 + ulp, 65504, 65504, kInfinity, -kInfinity, least, 0,
                      2 * least, 0x1p-14, -kInfinity, -0.0}));
  EXPECT_TRUE(std::isnan(apply(DType::f32, {kNaN}, to_f16)[0]));
}

/// Instructions of the processor convert vectors, if it has them; F16 converts the last elements.
TEST(Elementwise, F16ConvertsEveryNumberAsF16Does) {
  std::mt19937 random(1);
  std::vector<float> floats(4099);
  std::vector<F16> halves(65536 + 3);
  for (float& x : floats) x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<std::uint16_t>(i);
  std::vector<F16> narrow(floats.size());
  std::vector<float> wide(halves.size());
  const auto run = [](const auto& from, auto& to) {
    const ConstElementSpan x(from);
    const ElementSpan y(to);
    convert({x.dtype(), {x.size()}}, y.dtype()).run({.operands = {x.data()}, .result = y.data()});
  };
  run(floats, narrow);
  run(halves, wide);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(narrow[i].bits, F16(floats[i]).bits) << floats[i];
  }
  for (std::size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
              std::bit_cast<std::uint32_t>(static_cast<float>(halves[i])))
        << i;
  }
}

TEST(Elementwise, SmallIntegersWrapAndDivisionDoesNotTrap) {
  const auto binary = [](DType dtype, OpKind kind, double a, double b) {
    KernelCase test;
    const ValueId x = test.input({dtype, {1}}, std::array{a});
    const ValueId y = test.input({dtype, {1}}, std::array{b});
    test.output(test.build.binary(kind, x, y));
    return run_kernels(test).at(0).at(0);
  };
  EXPECT_EQ(binary(DType::u8, OpKind::add, 200, 100), 44);
  EXPECT_EQ(binary(DType::u8, OpKind::subtract, 1, 2), 255);
  EXPECT_EQ(binary(DType::u8, OpKind::multiply, 16, 17), 16);
  EXPECT_EQ(binary(DType::u8, OpKind::divide, 200, 3), 66);
  EXPECT_EQ(binary(DType::u8, OpKind::divide, 5, 0), 255);
  EXPECT_EQ(binary(DType::u8, OpKind::remainder, 200, 255), 200);
  EXPECT_EQ(binary(DType::i8, OpKind::add, 100, 100), -56);
  EXPECT_EQ(binary(DType::i8, OpKind::subtract, -128, 1), 127);
  EXPECT_EQ(binary(DType::i8, OpKind::multiply, -128, -1), -128);
  EXPECT_EQ(binary(DType::i8, OpKind::divide, -128, -1), -128);
  EXPECT_EQ(binary(DType::i8, OpKind::remainder, -128, -1), 0);
  EXPECT_EQ(binary(DType::i8, OpKind::power, -2, 7), -128);
}

TEST(Elementwise, IntegersWrapAndDivisionDoesNotTrap) {
  const double low = std::numeric_limits<std::int32_t>::min();
  const auto binary = [](OpKind kind, double a, double b) {
    KernelCase test;
    const ValueId x = test.input({DType::i32, {1}}, std::array{a});
    const ValueId y = test.input({DType::i32, {1}}, std::array{b});
    test.output(test.build.binary(kind, x, y));
    return run_kernels(test).at(0).at(0);
  };
  EXPECT_EQ(binary(OpKind::subtract, low, 1), -(low + 1));
  EXPECT_EQ(binary(OpKind::multiply, low, -1), low);
  EXPECT_EQ(binary(OpKind::divide, low, -1), low);
  EXPECT_EQ(binary(OpKind::divide, 5, 0), -1);
  EXPECT_EQ(binary(OpKind::power, -1, -3), -1);
  EXPECT_EQ(binary(OpKind::power, 2, -1), 0);
}

TEST(Elementwise, MaximumAndMinimumOfNanAreNan) {
  for (const DType dtype : kFloating) {
    for (const OpKind kind : {OpKind::maximum, OpKind::minimum}) {
      KernelCase test;
      const ValueId a = test.input({dtype, {4}}, std::array{kNaN, 1.0, kNaN, 2.0});
      const ValueId b = test.input({dtype, {4}}, std::array{1.0, kNaN, kNaN, 3.0});
      test.output(test.build.binary(kind, a, b));
      expect_exact(test);
    }
  }
}

TEST(Elementwise, TranscendentalsKeepTheirLimits) {
  const Elements exponential = f32(OpKind::exponential, {kInfinity, -kInfinity, 89, -104, 0, kNaN});
  EXPECT_EQ(exponential[0], kInfinity);
  EXPECT_EQ(exponential[1], 0);
  EXPECT_EQ(exponential[2], kInfinity);
  EXPECT_EQ(exponential[3], 0);
  EXPECT_EQ(exponential[4], 1);
  EXPECT_TRUE(std::isnan(exponential[5]));
  const Elements log = f32(OpKind::log, {kInfinity, 0, -0.0, -1, 1, kNaN});
  EXPECT_EQ(log[0], kInfinity);
  EXPECT_EQ(log[1], -kInfinity);
  EXPECT_EQ(log[2], -kInfinity);
  EXPECT_TRUE(std::isnan(log[3]));
  EXPECT_EQ(log[4], 0);
  EXPECT_TRUE(std::isnan(log[5]));
  const Elements softplus = f32(OpKind::softplus, {kInfinity, -kInfinity, 0, kNaN, 200, -30, -90});
  EXPECT_EQ(softplus[0], kInfinity);
  EXPECT_EQ(softplus[1], 0);
  EXPECT_FLOAT_EQ(static_cast<float>(softplus[2]), std::log(2.0F));
  EXPECT_TRUE(std::isnan(softplus[3]));
  EXPECT_EQ(softplus[4], 200);
  EXPECT_NEAR(softplus[5] / std::exp(-30.0), 1, 1e-6);
  EXPECT_NEAR(softplus[6] / std::exp(-90.0), 1, 1e-6);
  const Elements tanh = f32(OpKind::tanh, {kInfinity, -kInfinity, 0, kNaN});
  EXPECT_EQ(tanh[0], 1);
  EXPECT_EQ(tanh[1], -1);
  EXPECT_EQ(tanh[2], 0);
  EXPECT_TRUE(std::isnan(tanh[3]));
}

TEST(Elementwise, FunctionsNearOneOrZeroHaveTheirLimits) {
  const Elements expm1 =
      f32(OpKind::exponential_minus_one, {kInfinity, -kInfinity, -0.0, kNaN, 100, -100, 1e-30});
  EXPECT_EQ(expm1[0], kInfinity);
  EXPECT_EQ(expm1[1], -1);
  EXPECT_TRUE(expm1[2] == 0 && std::signbit(expm1[2]));
  EXPECT_TRUE(std::isnan(expm1[3]));
  EXPECT_EQ(expm1[4], kInfinity);
  EXPECT_EQ(expm1[5], -1);
  EXPECT_FLOAT_EQ(static_cast<float>(expm1[6]), 1e-30F);
  const Elements log1p = f32(OpKind::log_plus_one, {kInfinity, -1, -2, -0.0, kNaN, 1e-30});
  EXPECT_EQ(log1p[0], kInfinity);
  EXPECT_EQ(log1p[1], -kInfinity);
  EXPECT_TRUE(std::isnan(log1p[2]));
  EXPECT_TRUE(log1p[3] == 0 && std::signbit(log1p[3]));
  EXPECT_TRUE(std::isnan(log1p[4]));
  EXPECT_FLOAT_EQ(static_cast<float>(log1p[5]), 1e-30F);
  const Elements erf = f32(OpKind::erf, {kInfinity, -kInfinity, -0.0, kNaN, 9});
  EXPECT_EQ(erf[0], 1);
  EXPECT_EQ(erf[1], -1);
  EXPECT_TRUE(erf[2] == 0 && std::signbit(erf[2]));
  EXPECT_TRUE(std::isnan(erf[3]));
  EXPECT_EQ(erf[4], 1);
}

TEST(Elementwise, RoundingKeepsTiesEvenAndWhatHasNoFraction) {
  const Elements round = f32(OpKind::round_nearest_even, {0.5, 1.5, -2.5, 1e30, -kInfinity, kNaN});
  EXPECT_EQ(round[0], 0);
  EXPECT_EQ(round[1], 2);
  EXPECT_EQ(round[2], -2);
  EXPECT_EQ(round[3], static_cast<double>(1e30F));
  EXPECT_EQ(round[4], -kInfinity);
  EXPECT_TRUE(std::isnan(round[5]));
}

TEST(Elementwise, TheRemainderOfIntegersNeverTraps) {
  KernelCase test;
  const double least = std::numeric_limits<std::int32_t>::min();
  const ValueId a = test.input({DType::i32, {4}}, Elements{7, -7, least, 5});
  const ValueId b = test.input({DType::i32, {4}}, Elements{0, 4, -1, -3});
  test.output(test.build.binary(OpKind::remainder, a, b));
  EXPECT_EQ(run_kernels(test).at(0), (Elements{7, -3, 0, 2}));
}

/// Returns every `step`th bit pattern of a float, which gives numbers of all magnitudes and both
/// signs, and subnormal ones.
Elements all_magnitudes(std::uint64_t step) {
  Elements floats;
  for (std::uint64_t bits = 0; bits < 1ULL << 32; bits += step) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(x)) floats.push_back(x);
  }
  return floats;
}

struct Function {
  OpKind kind;
  double (*exact)(double);
  double ulps;  ///< the largest allowed error, in units of the result's last place
};
constexpr Function kFunctions[] = {{OpKind::exponential, std::exp, 1.5},
                                   {OpKind::log, std::log, 1.5},
                                   {OpKind::tanh, std::tanh, 1.5},
                                   {OpKind::erf, std::erf, 2},
                                   {OpKind::exponential_minus_one, std::expm1, 2},
                                   {OpKind::log_plus_one, std::log1p, 2.4}};

TEST(Elementwise, FunctionsAreAsNearAsTheySay) {
  const Elements x = all_magnitudes(4999);
  for (const auto& [kind, exact_of, ulps] : kFunctions) {
    const Elements y = f32(kind, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = exact_of(x[i]);
      const auto rounded = static_cast<float>(exact);
      if (!std::isfinite(rounded)) {
        ASSERT_TRUE(std::isnan(exact) ? std::isnan(y[i]) : y[i] == double{rounded}) << x[i];
        continue;
      }
      const double ulp = double{std::nextafter(std::fabs(rounded), INFINITY)} - std::fabs(rounded);
      ASSERT_LE(std::abs(y[i] - exact), ulps * ulp) << to_string(kind) << " of " << x[i];
    }
  }
}

/// Returns the paths that this processor has; the first is `portable`, the oracle for the others.
std::vector<KernelPath> paths() {
  std::vector<KernelPath> all;
  for (const Vectors vectors : {Vectors::portable, Vectors::avx2, Vectors::avx512}) {
    if (vectors <= parse_kernel_path("").vectors) all.push_back({vectors, false});
  }
  return all;
}

TEST(Elementwise, EveryPathGivesTheSameBits) {
  const KernelPath before = kernel_path();
  Elements x = all_magnitudes(99991);
  x.insert(x.end(), {kInfinity, -kInfinity, kNaN, 0.0, -0.0});
  const Elements y(x.rbegin(), x.rend());
  const TensorType type{DType::f32, {static_cast<std::int64_t>(x.size())}};
  for (std::size_t number = 0; number < kOpNumberMax; ++number) {
    const auto kind = static_cast<OpKind>(number);
    if (find_row(kind) == nullptr || !is_elementwise(kind) || kind == OpKind::convert) continue;
    const std::size_t operands = row(kind).operands->most;
    if (row(kind).attrs->size() > 0 || operands > 2 || to_string(kind).starts_with("logical")) {
      continue;
    }
    std::vector<Elements> results;
    for (const KernelPath& path : paths()) {
      set_kernel_path(path);
      KernelCase test;
      const ValueId a = test.input(type, x);
      test.output(operands == 1 ? test.build.unary(kind, a)
                                : test.build.binary(kind, a, test.input(type, y)));
      results.push_back(run_kernels(test).at(0));
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(results[0][i]) && std::isnan(results.back()[i])) continue;
        ASSERT_EQ(std::bit_cast<std::uint64_t>(results.back()[i]),
                  std::bit_cast<std::uint64_t>(results[0][i]))
            << to_string(kind) << " of " << x[i] << ", vectors " << static_cast<int>(path.vectors);
      }
    }
  }
  set_kernel_path(before);
}

TEST(Elementwise, AWrongPathIsNamed) {
  EXPECT_EQ(parse_kernel_path("tiles,portable"), KernelPath{});
  EXPECT_EQ(parse_kernel_path("tiles").compiles, false);
  try {
    parse_kernel_path("tiles,sse9");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_NE(std::string_view(error.what()).find("'sse9'"), std::string_view::npos);
  }
}

TEST(Elementwise, ResultDoesNotDependOnWhereAnElementLies) {
  std::mt19937 random(1);
  for (const OpKind kind : {OpKind::exponential, OpKind::log, OpKind::tanh, OpKind::logistic,
                            OpKind::log_plus_one, OpKind::exponential_minus_one, OpKind::erf}) {
    SCOPED_TRACE(to_string(kind));
    KernelCase test;
    test.output(test.build.unary(kind, test.input({DType::f32, {61}}, random, 0.1, 5)));
    const Elements together = run_kernels(test).at(0);
    for (std::size_t i = 0; i < together.size(); ++i) {
      const Elements alone =
          apply(DType::f32, {test.inputs[0][i]},
                [kind](Builder& build, ValueId value) { return build.unary(kind, value); });
      ASSERT_EQ(alone[0], together[i]) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace weft::kernels::elementwise_test
