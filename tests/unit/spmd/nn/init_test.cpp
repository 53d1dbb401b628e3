#include <weft/nn/init.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/ops/elementwise.hpp>

#include "spmd/nn/init.hpp"
#include "spmd/program/element.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::init_test {
namespace {

using testing::expect_error;
using Floats = std::vector<float>;
using Init = testing::TensorTest;

Parameter zero_parameter(const Shape& shape, const std::string& name = "w") {
  return make_parameter(name, Floats(static_cast<std::size_t>(shape.num_elements())), shape);
}

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};
Moments moments(const Parameter& parameter) {
  const Floats elements = parameter.to_vector();
  const auto count = static_cast<double>(elements.size());
  Moments m;
  for (const float x : elements) m.mean += x / count;
  for (const float x : elements) m.deviation += (x - m.mean) * (x - m.mean) / count;
  m.deviation = std::sqrt(m.deviation);
  m.low = *std::ranges::min_element(elements);
  m.high = *std::ranges::max_element(elements);
  return m;
}

/// Expects a uniform distribution from -bound to bound. The extremes of 20,000 elements are within
/// 1/1000 of the bound, and the tolerance of the moments is six standard errors.
void expect_uniform(const Parameter& parameter, double bound) {
  const Moments m = moments(parameter);
  EXPECT_GE(m.low, -bound);
  EXPECT_LE(m.high, bound);
  EXPECT_LT(m.low, -0.999 * bound);
  EXPECT_GT(m.high, 0.999 * bound);
  EXPECT_NEAR(m.mean, 0, 0.025 * bound);
  EXPECT_NEAR(m.deviation, bound / std::numbers::sqrt3, 0.012 * bound);
}

void expect_normal(const Parameter& parameter, double mean, double deviation) {
  const Moments m = moments(parameter);
  EXPECT_NEAR(m.mean, mean, 0.043 * deviation);
  EXPECT_NEAR(m.deviation, deviation, 0.03 * deviation);
  EXPECT_GT(m.high, mean + 3 * deviation);
}

TEST_F(Init, SpreadsByFanInAndFanOutAsTorchDocuments) {
  const Parameter w = zero_parameter({100, 50, 2, 2});  // fan in 200, fan out 400
  init::xavier_uniform(w, 2);
  expect_uniform(w, 2 * std::sqrt(6.0 / 600));
  init::xavier_normal(w);
  expect_normal(w, 0, std::sqrt(2.0 / 600));
  init::kaiming_uniform(w);
  expect_uniform(w, std::sqrt(2.0) * std::sqrt(3.0 / 200));
  init::kaiming_uniform(w, {.negative_slope = std::sqrt(5.0)});  // as in torch's Linear
  expect_uniform(w, 1 / std::sqrt(200.0));
  init::kaiming_normal(w, {.mode = init::Fan::out, .nonlinearity = init::Nonlinearity::relu});
  expect_normal(w, 0, std::sqrt(2.0 / 400));
}

TEST_F(Init, GainsAreTorchs) {
  using init::Nonlinearity;
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::linear), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::sigmoid), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::tanh), 5.0 / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::relu), 1.4142135623730951);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::leaky_relu), 1.4141428569978354);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::leaky_relu, 0.2), 1.3867504905630728);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::selu), 0.75);
}

TEST_F(Init, SetsPlainDistributions) {
  const Parameter w = zero_parameter({20000});
  init::constant(w, 0.25);
  EXPECT_EQ(w.to_vector(), Floats(20000, 0.25F));
  init::normal(w, 3, 0.5);
  expect_normal(w, 3, 0.5);
  init::uniform(w, 2, 6);
  const Moments m = moments(w);
  EXPECT_GE(m.low, 2);
  EXPECT_LT(m.high, 6);
  EXPECT_NEAR(m.mean, 4, 0.05);
  init::set(w, Floats(20000, -1));
  EXPECT_EQ(w.to_vector()[7], -1);
}

TEST_F(Init, CutsTheNormalDistributionOff) {
  const Parameter w = zero_parameter({20000});
  init::trunc_normal(w);
  Moments m = moments(w);
  EXPECT_GE(m.low, -2);
  EXPECT_LE(m.high, 2);
  EXPECT_LT(m.low, -1.97);
  EXPECT_GT(m.high, 1.97);
  EXPECT_NEAR(m.mean, 0, 0.04);
  EXPECT_NEAR(m.deviation, 0.8796, 0.02);  // sqrt(1 - 4 phi(2) / (2 Phi(2) - 1))
  // The mean of this tail is phi(3) / (1 - Phi(3)) = 3.2831.
  init::trunc_normal(w, {.low = 3, .high = 100});
  m = moments(w);
  EXPECT_GE(m.low, 3);
  EXPECT_NEAR(m.mean, 3.2831, 0.012);
  init::trunc_normal(w, {.mean = 1, .standard_deviation = 0.1, .low = -100, .high = 0.7});
  EXPECT_NEAR(moments(w).mean, 1 - 0.32831, 0.0012);
}

TEST_F(Init, OrthogonalRowsOrColumnsHaveTheLengthOfTheGain) {
  for (const Shape& shape : {Shape{12, 40}, Shape{40, 12}, Shape{12, 5, 8}, Shape{16, 16}}) {
    const Parameter w = zero_parameter(shape);
    init::orthogonal(w, 2);
    const Floats elements = w.to_vector();
    const auto rows = static_cast<std::size_t>(shape[0]);
    const std::size_t columns = elements.size() / rows;
    const bool wide = rows <= columns;
    const std::size_t count = std::min(rows, columns);
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        double dot = 0;
        for (std::size_t k = 0; k < std::max(rows, columns); ++k) {
          dot += wide ? elements[a * columns + k] * elements[b * columns + k]
                      : elements[k * columns + a] * elements[k * columns + b];
        }
        EXPECT_NEAR(dot, a == b ? 4 : 0, 2e-6) << a << ' ' << b;
      }
    }
  }
}

TEST_F(Init, DependsOnTheSeedAndTheNameAlone) {
  const Parameter a = zero_parameter({3, 4}, "a");
  const Parameter again = zero_parameter({3, 4}, "a");
  const Parameter b = zero_parameter({3, 4}, "b");
  for (const Parameter& w : {a, again, b}) init::kaiming_normal(w);
  EXPECT_EQ(a.to_vector(), again.to_vector());
  EXPECT_NE(a.to_vector(), b.to_vector());
}

TEST_F(Init, IsWhatTheFirstStepUses) {
  Module root;
  Linear fc(root, "fc", {.in_features = 2, .out_features = 1});
  init::constant(fc.weight, 3);
  init::constant(fc.bias, 1);
  EXPECT_EQ(fc(testing::f32({1, 2}, {1, 2})).item(), 10);
  expect_error(Errc::invalid_argument,
               {"'fc.weight' f32[1,2] has already been used", "init_test.cpp:"},
               [&] { init::constant(fc.weight, 4); });
}

/// Returns memory that has the elements of a part of the tensor. The memory may be larger than the
/// part.
Floats read_part(const TensorSource& source, const PlacedBox& placed) {
  Floats memory(static_cast<std::size_t>(placed.room.num_elements()), -1);
  const TensorSource::Target target{placed, reinterpret_cast<std::byte*>(memory.data())};
  source.read({&target, 1});
  return memory;
}

TEST_F(Init, MakesOfEachPartWhatTheWholeHasThere) {
  const TensorType type{DType::f32, {5, 3, 4}};
  const SourcePtr made = made_values(type, "x", uniform_elements("w", 1));
  const Floats whole = read_part(*made, whole_box(type.shape));
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t column = 0; column < 4; ++column) {
      const PlacedBox placed{.box = {.offsets = {row, 0, column}, .dims = {1, 3, 1}},
                             .room = {2, 4, 2}};
      const Floats part = read_part(*made, placed);
      for (std::int64_t k = 0; k < 3; ++k) {
        EXPECT_EQ(part[static_cast<std::size_t>(k * 2)],
                  whole[static_cast<std::size_t>((row * 3 + k) * 4 + column)]);
      }
      EXPECT_EQ(part[1], -1);  // padding is not written
    }
    const PlacedBox rows{.box = {.offsets = {row, 0, 0}, .dims = {1, 3, 4}}, .room = {1, 3, 4}};
    const auto begin = whole.begin() + row * 12;
    EXPECT_EQ(read_part(*made, rows), Floats(begin, begin + 12));
  }
}

TEST_F(Init, GivesChipsThatHoldTheSameThatOnce) {
  const TensorType type{DType::f32, {4, 2}};
  int calls = 0;
  const SourcePtr made = made_values(type, "x", [&](std::uint64_t first, std::span<float> out) {
    ++calls;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(first + i);
  });
  Floats one(8), other(8);
  const TensorSource::Target targets[] = {
      {whole_box(type.shape), reinterpret_cast<std::byte*>(one.data())},
      {whole_box(type.shape), reinterpret_cast<std::byte*>(other.data())}};
  made->read(targets);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(one, (Floats{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(other, one);
}

TEST_F(Init, HoldsConstantsOfEachDType) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::pred}) {
    for (const double value : {0.0, 1.0}) {
      const TensorType type{dtype, {3, 5}};
      std::vector<std::byte> memory(static_cast<std::size_t>(type.bytes()), std::byte{7});
      const TensorSource::Target target{whole_box(type.shape), memory.data()};
      constant_values(type, value)->read({&target, 1});
      for (std::int64_t i = 0; i < 15; ++i) {
        EXPECT_EQ(load_element(dtype, memory.data() + i * byte_size(dtype)), value);
      }
    }
  }
}

/// The program of a resumed loop gives its parameters first values again, but then loads other
/// values into them, so the first values must not be computed.
TEST_F(Init, MakesNothingThatNobodyReads) {
  int calls = 0;
  {
    Parameter w = make_parameter("w", 0, {4});
    begin_with(w, "x", [&](std::uint64_t, std::span<float>) { ++calls; });
    begin_uniform(w, 1);
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(Init, TellsOtherFirstValuesApart) {
  const TensorType type{DType::f32, {4}};
  EXPECT_EQ(constant_values(type, 1)->digest(), constant_values(type, 1)->digest());
  EXPECT_NE(constant_values(type, 1)->digest(), constant_values(type, 2)->digest());
  EXPECT_NE(made_values(type, "uniform 1", {})->digest(),
            made_values(type, "uniform 2", {})->digest());
}

TEST_F(Init, RefusesWhatDoesNotFit) {
  const Parameter bias = zero_parameter({4});
  expect_error(Errc::invalid_argument,
               {"init::xavier_uniform: 'w' f32[4] has no fan in", "init_test.cpp:"},
               [&] { init::xavier_uniform(bias); });
  expect_error(Errc::invalid_argument, {"low = 2", "high = -2"},
               [&] { init::trunc_normal(bias, {.low = 2, .high = -2}); });
  expect_error(Errc::invalid_argument, {"init::normal: standard_deviation = -1"},
               [&] { init::normal(bias, 0, -1); });
  expect_error(Errc::invalid_argument, {"3 elements are given for 'w' f32[4]"},
               [&] { init::set(bias, Floats(3)); });
}

}  // namespace
}  // namespace weft::init_test
