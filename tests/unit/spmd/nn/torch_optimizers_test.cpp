/// Compares optimizers with torch and with papers (tests/golden/torch_nn/optimizers.py).

#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/optim/adaptive.hpp>
#include <weft/optim/large_scale.hpp>
#include <weft/sharding/presets.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden_training.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/support/torch_training.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::torch_optimizers_test {
namespace {

using testing::expect_error;
using testing::Safetensors;
using Parameters = std::vector<Parameter>;

struct OptimizerCase {
  std::string name;
  std::function<std::unique_ptr<Optimizer>(const Parameters&)> make;
  bool of_matrices = false;
};
std::ostream& operator<<(std::ostream& out, const OptimizerCase& which) {
  return out << which.name;
}

template <typename Kind>
OptimizerCase of(const std::string& name, const typename Kind::Options& options) {
  return {name, [options](const Parameters& all) { return std::make_unique<Kind>(all, options); }};
}

OptimizerCase of_muon(const std::string& name, const Muon::Options& options) {
  OptimizerCase which = of<Muon>(name, options);
  which.of_matrices = true;
  return which;
}

std::vector<OptimizerCase> cases() {
  return {
      of<SGD>("dampening", {.lr = 0.1, .momentum = 0.9, .dampening = 0.4}),
      of<SGD>("maximize", {.lr = 0.05, .momentum = 0.9, .maximize = true}),
      of<Adam>("amsgrad", {.lr = 1e-2,
                           .beta1 = 0.8,
                           .beta2 = 0.99,
                           .eps = 1e-4,
                           .weight_decay = 0.1,
                           .amsgrad = true}),
      of<AdamW>("adamw_amsgrad", {.lr = 1e-2,
                                  .beta1 = 0.8,
                                  .beta2 = 0.99,
                                  .eps = 1e-4,
                                  .weight_decay = 0.1,
                                  .amsgrad = true,
                                  .maximize = true}),
      of<RMSprop>("rmsprop", {.alpha = 0.9, .eps = 1e-4, .weight_decay = 0.1}),
      of<RMSprop>("rmsprop_centered",
                  {.alpha = 0.9, .eps = 1e-3, .momentum = 0.8, .centered = true}),
      of<Adagrad>(
          "adagrad",
          {.lr = 0.05, .lr_decay = 0.3, .weight_decay = 0.1, .initial_accumulator_value = 0.01}),
      of<Lion>("lion", {.lr = 1e-2, .beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.1}),
      of<LAMB>("lamb", {.lr = 1e-2, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-4, .weight_decay = 0.1}),
      of<Adafactor>("adafactor", {.lr = 0.2, .weight_decay = 0.1}),
      of_muon("muon", {.lr = 0.05, .momentum = 0.9}),
      of_muon("muon_adamw", {.lr = 0.05,
                             .weight_decay = 0,
                             .momentum = 0.9,
                             .nesterov = false,
                             .adjust_lr = Muon::Adjust::match_rms_adamw}),
  };
}

struct Mlp : Module {
  explicit Mlp(bool has_biases) : biases(has_biases) {}
  bool biases;
  Linear fc1{*this, "fc1", {.in_features = 12, .out_features = 16, .bias = biases}};
  Linear fc2{*this, "fc2", {.in_features = 16, .out_features = 8, .bias = biases}};
  Linear fc3{*this, "fc3", {.in_features = 8, .out_features = 5, .bias = biases}};

  Tensor operator()(const Tensor& x) const { return fc3(relu(fc2(tanh(fc1(x))))); }
};

enum class Layout : std::uint8_t { one_chip, tensor_parallel, zero1 };

void expect_as_golden(const OptimizerCase& which, Runtime& runtime, Layout layout) {
  const RuntimeScope scope(runtime);
  const Safetensors file(which.of_matrices ? "torch_nn/train_matrices.safetensors"
                                           : "torch_nn/train_optimizers.safetensors");
  const Mlp net(!which.of_matrices);
  const Mesh* mesh = runtime.mesh();
  if (layout == Layout::tensor_parallel) {
    tensor_parallel(net, *mesh,
                    {{"fc1", TensorParallelStyle::columns}, {"fc2", TensorParallelStyle::rows}});
  }
  const std::unique_ptr<Optimizer> optimizer = which.make(net.parameters());
  if (layout == Layout::zero1) zero1(*optimizer, *mesh);
  load_golden(file, "parameter.", net.parameters());
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    const Tensor x = testing::golden_entry<float>(file, "x", step);
    const Tensor labels = testing::golden_entry<std::int32_t>(file, "labels", step);
    if (mesh != nullptr) data_parallel({x, labels}, *mesh);
    const Tensor loss = cross_entropy(net(x), labels);
    optimizer->step(grad(loss, net.parameters()));
    sync();
    losses.push_back(static_cast<float>(loss.item()));
  }
  testing::expect_as_torch("loss", losses, file.elements<float>(which.name + ".loss"));
  for (const Parameter& parameter : net.parameters()) {
    const std::string golden = fmt::format("{}.parameter.{}", which.name, parameter.name());
    testing::expect_as_torch(golden, parameter.to_vector(), file.elements<float>(golden));
  }
}

class TorchOptimizer : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(TorchOptimizer, GivesItsParameters) {
  testing::InterpretRuntime runtime;
  expect_as_golden(GetParam(), runtime, Layout::one_chip);
}

TEST_P(TorchOptimizer, GivesThemWithTensorParallelism) {
  testing::SimulateRuntime runtime(Mesh({2, 2}, {"data", "model"}));
  expect_as_golden(GetParam(), runtime, Layout::tensor_parallel);
}

TEST_P(TorchOptimizer, GivesThemWithShardedState) {
  testing::SimulateRuntime runtime(Mesh({2, 2}, {"data", "model"}));
  expect_as_golden(GetParam(), runtime, Layout::zero1);
}

INSTANTIATE_TEST_SUITE_P(All, TorchOptimizer, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchOptimizers, CoverTheGoldenFiles) {
  std::size_t golden = 0;
  for (const char* path :
       {"torch_nn/train_optimizers.safetensors", "torch_nn/train_matrices.safetensors"}) {
    for (const std::string& name : Safetensors(path).names("")) golden += name.ends_with(".loss");
  }
  EXPECT_EQ(golden, cases().size());
}

using Optimizers = testing::TensorTest;

TEST_F(Optimizers, AdafactorKeepsRowsAndColumns) {
  const std::vector<float> zeros(24);
  const Parameter w = make_parameter("w", zeros, {2, 3, 4});
  const Parameter b = make_parameter("b", std::vector<float>(4), {4});
  const Adafactor optimizer({w, b}, {});
  std::vector<std::string> state;
  for (const Parameter& own : optimizer.state()) {
    state.push_back(fmt::format("{} {}", own.name(), own.type().to_string()));
  }
  EXPECT_EQ(state, (std::vector<std::string>{"w.row_var f32[2,3,1]", "w.col_var f32[2,1,4]",
                                             "b.variance f32[4]", "w.step f64[]"}));
}

TEST_F(Optimizers, CenteredRMSpropStaysFiniteForEqualGradients) {
  Parameter w = make_parameter("w", std::vector<float>{1}, {1});
  RMSprop optimizer({w}, {.centered = true});
  for (int step = 0; step < 2000; ++step) {
    optimizer.step(std::vector<Tensor>{full({1}, 0.1)});
    sync();
  }
  EXPECT_TRUE(std::isfinite(w.item()));
}

TEST_F(Optimizers, LambLeavesAParameterOfZerosItsOwnStep) {
  Parameter w = make_parameter("w", std::vector<float>{0, 0}, {2});
  LAMB optimizer({w}, {.lr = 0.5, .eps = 0});
  optimizer.step(std::vector<Tensor>{testing::f32({2, -3}, {2})});
  sync();
  testing::expect_near(w, {-0.5, 0.5});
}

TEST_F(Optimizers, MuonsStepsAreNearlyOrthogonal) {
  Parameter w = make_parameter("w", std::vector<float>(6), {3, 2});
  Muon optimizer({w}, {.lr = 1, .weight_decay = 0});
  optimizer.step(std::vector<Tensor>{testing::f32({3, 1, -2, 5, 4, 0}, {3, 2})});
  sync();
  const std::vector<float> step = w.to_vector();
  const auto dot = [&](std::size_t a, std::size_t b) {
    double total = 0;
    for (std::size_t row = 0; row < 3; ++row) total += step[2 * row + a] * step[2 * row + b];
    return total * 2 / 3;  // the factor is sqrt(3 / 2)
  };
  // The singular values are between 0.7 and 1.2, as K. Jordan states, so their squares are between
  // 0.49 and 1.44.
  EXPECT_NEAR(dot(0, 0), 0.965, 0.475);
  EXPECT_NEAR(dot(1, 1), 0.965, 0.475);
  EXPECT_NEAR(dot(0, 1), 0, 0.475);
}

TEST(OptimizersOptions, RefuseWhatTorchRefuses) {
  const Parameter b = make_parameter("b", std::vector<float>{1}, {1});
  expect_error(Errc::invalid_argument, {"Muon: 'b' f32[1] isn't a matrix", "optimizers_test.cpp:"},
               [&] { Muon({b}, {}); });
  expect_error(Errc::invalid_argument, {"SGD: nesterov needs a momentum above 0 and no dampening"},
               [&] { SGD({b}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); });
  expect_error(Errc::invalid_argument, {"RMSprop: alpha = -1"},
               [&] { RMSprop({b}, {.alpha = -1}); });
  expect_error(Errc::invalid_argument, {"Adagrad: lr_decay = -1"},
               [&] { Adagrad({b}, {.lr_decay = -1}); });
  expect_error(Errc::invalid_argument, {"Adafactor: beta2_decay = 0.5"},
               [&] { Adafactor({b}, {.beta2_decay = 0.5}); });
  expect_error(Errc::invalid_argument, {"Lion: beta2 = 1"}, [&] { Lion({b}, {.beta2 = 1}); });
  expect_error(Errc::invalid_argument, {"LAMB: lr = -1"}, [&] { LAMB({b}, {.lr = -1}); });
  expect_error(Errc::invalid_argument, {"Lion: the parameter list is empty"},
               [&] { Lion(Parameters{}, {}); });
}

}  // namespace
}  // namespace weft::torch_optimizers_test
