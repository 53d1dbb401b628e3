#include <weft/optim/gradients.hpp>

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <weft/ops/elementwise.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/optim/parameter_average.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::gradients_test {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::f32;
using Floats = std::vector<float>;

using Gradients = testing::TensorTest;

TEST_F(Gradients, OfF16AreClippedThoughTheirSquaresOverflow) {
  std::vector<Tensor> grads{cast(f32({300, 400}, {2}), DType::f16)};
  const Tensor norm = clip_by_global_norm(grads, 5);
  EXPECT_EQ(norm.type().dtype, DType::f32);
  EXPECT_EQ(grads[0].type().dtype, DType::f16);
  expect_near(norm, {500});
  EXPECT_NEAR(cast(grads[0], DType::f32).to_vector()[0], 3, 2e-3);
}

TEST_F(Gradients, AreClippedByValue) {
  std::vector<Tensor> grads{f32({-3, 0.5, 2}, {3}), Tensor(), f32({1.25}, {1})};
  clip_by_value(grads, 1);
  expect_near(grads[0], {-1, 0.5, 1});
  EXPECT_FALSE(grads[1].defined());
  expect_near(grads[2], {1});
  expect_error(Errc::invalid_argument, {"clip_by_value: max_value 0", "gradients_test.cpp:"},
               [&] { clip_by_value(grads, 0); });
}

TEST_F(Gradients, AccumulateOverStepsToTheirMean) {
  Parameter a = make_parameter("a", Floats{1, 2}, {2});
  Parameter b = make_parameter("b", Floats{5}, {1});
  b.requires_grad(false);
  SGD optimizer({a, b}, {.lr = 1});
  GradientAccumulation accumulation({a, b});
  for (int step = 0; step < 6; ++step) {
    accumulation.add(std::vector<Tensor>{f32({1.0F + float(step), 0}, {2}), Tensor()});
    if (step % 2 == 1) optimizer.step(accumulation.take());
    sync();
    const double taken = std::array{0.0, 1.5, 1.5, 5.0, 5.0, 10.5}.at(std::size_t(step));
    expect_near(a, {1 - taken, 2});
  }
  EXPECT_EQ(b.item(), 5);
  // Two programs alternate: only every second step has an update.
  const auto& programs = runtime_.programs;
  EXPECT_EQ(fingerprint(programs[2]), fingerprint(programs[4]));
  EXPECT_EQ(fingerprint(programs[3]), fingerprint(programs[5]));
}

TEST_F(Gradients, HaveTheirSumsAsState) {
  const Parameter a = make_parameter("a", Floats{1, 2}, {2});
  const GradientAccumulation accumulation({a});
  ASSERT_EQ(accumulation.state().size(), 3U);
  EXPECT_EQ(accumulation.state()[0].name(), "a.grad_sum");
  EXPECT_EQ(accumulation.state()[1].name(), "a.grad_count");
  EXPECT_EQ(accumulation.state()[2].name(), "a.grad_losses");
  expect_error(Errc::invalid_argument, {"the parameter list is empty"},
               [] { GradientAccumulation(std::vector<Parameter>{}); });
}

TEST_F(Gradients, OfAnotherTypeAreNotAccumulated) {
  GradientAccumulation accumulation({make_parameter("a", Floats{1, 2}, {2})});
  expect_error(Errc::invalid_argument,
               {"GradientAccumulation::add: grads[0] is f32[3], but its parameter is 'a' f32[2]"},
               [&] { accumulation.add(std::vector<Tensor>{full({3}, 1)}); });
}

using Average = testing::TensorTest;

TEST_F(Average, BeginsAtTheParameterAndMovesByTheDecay) {
  Parameter w = make_parameter("w", Floats{1, -1}, {2});
  ParameterAverage average({w}, {.decay = 0.75});
  double expected = 0;
  for (int step = 0; step < 4; ++step) {
    w.assign(w * 2);
    average.update();
    sync();
    const double value = std::pow(2, step + 1);
    expected = step == 0 ? value : 0.75 * expected + 0.25 * value;
    expect_near(average.state()[0], {expected, -expected});
  }
  EXPECT_EQ(average.state()[1].item(), 4);
  EXPECT_EQ(average.state()[0].name(), "w.average");
}

TEST_F(Average, SwapsWithTheParametersAndBack) {
  Parameter w = make_parameter("w", Floats{1}, {1});
  ParameterAverage average({w}, {.decay = 0.5});
  average.update();
  w.assign(w + 4);
  average.update();
  sync();
  average.swap();
  EXPECT_EQ((w * 1).item(), 3);
  average.swap();
  sync();
  EXPECT_EQ(w.item(), 5);
  EXPECT_EQ(average.state()[0].item(), 3);
}

TEST_F(Average, RefusesADecayBeyondOne) {
  const Parameter w = make_parameter("w", Floats{1}, {1});
  expect_error(Errc::invalid_argument, {"decay = 1.5"},
               [&] { ParameterAverage({w}, {.decay = 1.5}); });
}

TEST(AverageOnChips, IsShardedAsItsParameter) {
  testing::SimulateRuntime runtime(Mesh({4}, {"data"}));
  const RuntimeScope scope(runtime);
  const Parameter w = make_parameter("w", Floats{1, 2, 3, 4}, {4});
  mark_sharding(w, *runtime.mesh(), {{"data"}});
  ParameterAverage average({w}, {});
  average.update();
  sync();
  EXPECT_EQ(average.state()[0].to_vector(), (Floats{1, 2, 3, 4}));
  EXPECT_TRUE(average.state()[0].node()->input_sharding().is_sharded());
}

}  // namespace
}  // namespace weft::gradients_test
