#include <weft/optim/optimizer.hpp>

#include "spmd/ops/fingerprint.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::optim_test {
namespace {

using testing::expect_error;
using testing::f32;
using Floats = std::vector<float>;

/// AdamW for one element in double, as torch/optim/adamw.py documents it line by line.
struct ReferenceAdamW {
  AdamW::Options options;
  double p = 0;
  double m = 0;
  double v = 0;
  int t = 0;

  void step(double g) {
    ++t;
    p *= 1 - options.lr * options.weight_decay;
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    const double denominator =
        std::sqrt(v) / std::sqrt(1 - std::pow(options.beta2, t)) + options.eps;
    p -= options.lr / (1 - std::pow(options.beta1, t)) * m / denominator;
  }
};

using AdamWTest = testing::TensorTest;
using SGDTest = testing::TensorTest;
using ClipTest = testing::TensorTest;

TEST_F(AdamWTest, FollowsTorchsFormulaOverFiveStepsWithAChangingRate) {
  const AdamW::Options options{
      .lr = 0.1, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.05};
  const Floats start{1, -2, 0.5};
  Parameter w = make_parameter("w", start, {3});
  AdamW optimizer({w}, options);
  std::vector<ReferenceAdamW> reference;
  for (const float p : start) reference.push_back({.options = options, .p = p});

  for (int step = 0; step < 5; ++step) {
    const double lr = 0.1 / (1 + step);
    optimizer.set_lr(lr);
    // The loss is sum(c w^3), so g = 3 c w^2.
    const Tensor c = f32({1, -0.5, 2}, {3});
    const Tensor loss = sum(c * w * w * w);
    optimizer.step(grad(loss, std::vector{w}));
    sync();
    const std::vector<double> coefficients{1, -0.5, 2};
    const Floats values = w.to_vector();
    for (std::size_t i = 0; i < 3; ++i) {
      reference[i].options.lr = lr;
      reference[i].step(3 * coefficients[i] * reference[i].p * reference[i].p);
      EXPECT_NEAR(values[i], reference[i].p, 2e-6 * std::abs(reference[i].p))
          << "element " << i << " after step " << step + 1;
    }
  }
}

TEST_F(AdamWTest, RateAndCorrectionsAreInputsSoThatNoStepIsANewProgram) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  AdamW optimizer({w}, {});
  for (int step = 0; step < 4; ++step) {
    optimizer.set_lr(1e-3 * step);
    optimizer.step(std::vector{w * 1});
    sync();
  }
  const auto& programs = runtime_.programs;
  EXPECT_EQ(fingerprint(programs[1]), fingerprint(programs[2]));
  EXPECT_EQ(fingerprint(programs[1]), fingerprint(programs[3]));
}

TEST_F(AdamWTest, UpdatesAllParametersAndMoments) {
  Parameter a = make_parameter("a", Floats{1}, {1});
  Parameter b = make_parameter("b", Floats{1, 2}, {2});
  AdamW optimizer({a, b}, {});
  optimizer.step(std::vector<Tensor>{full({1}, 1), full({2}, 2)});
  sync();
  std::vector<std::string> updated;
  for (const ProgramOutput& output : runtime_.programs.back().outputs) {
    updated.push_back(output.name);
    EXPECT_GE(output.updates, 0);
  }
  std::sort(updated.begin(), updated.end());
  EXPECT_EQ(updated,
            (std::vector<std::string>{"a", "a.bias_correction1", "a.bias_correction2", "a.exp_avg",
                                      "a.exp_avg_sq", "b", "b.exp_avg", "b.exp_avg_sq"}));
  EXPECT_NEAR(optimizer.state()[2].to_vector()[0], 0.2, 1e-7);
  EXPECT_EQ(optimizer.state()[2].name(), "b.exp_avg");
}

TEST_F(AdamWTest, CorrectionsStayExactOverManySteps) {
  Parameter w = make_parameter("w", Floats{1}, {1});
  const AdamW::Options options{.lr = 1e-3, .weight_decay = 0};
  AdamW optimizer({w}, options);
  ReferenceAdamW reference{.options = options, .p = 1};
  for (int step = 0; step < 3000; ++step) {
    optimizer.step(std::vector<Tensor>{full({1}, 1)});
    sync();
    reference.step(1);
  }
  EXPECT_NEAR(w.item(), reference.p, 1e-5 * std::abs(reference.p));
}

TEST_F(AdamWTest, GroupsHaveOptionsOfTheirOwn) {
  Parameter a = make_parameter("a", Floats{1}, {1});
  Parameter b = make_parameter("b", Floats{1}, {1});
  AdamW optimizer({{.parameters = {a}, .options = {.lr = 0.1, .weight_decay = 0}},
                   {.parameters = {b}, .options = {.lr = 0.2, .weight_decay = 0.5}}});
  optimizer.set_lr(0.05, 0);
  EXPECT_EQ(optimizer.lr(0), 0.05);
  EXPECT_EQ(optimizer.lr(1), 0.2);
  optimizer.step(std::vector<Tensor>{full({1}, 3), full({1}, 3)});
  sync();
  EXPECT_NEAR(a.item(), 1 - 0.05, 1e-6);
  EXPECT_NEAR(b.item(), 1 * (1 - 0.2 * 0.5) - 0.2, 1e-6);
  EXPECT_EQ(optimizer.parameters()[1].name(), "b");
}

TEST_F(AdamWTest, AdamAddsTheDecayToTheGradient) {
  Parameter w = make_parameter("w", Floats{2}, {1});
  Adam optimizer({w}, {.lr = 0.1, .weight_decay = 0.5});
  ReferenceAdamW reference{.options = {.lr = 0.1, .weight_decay = 0}, .p = 2};
  for (int step = 0; step < 3; ++step) {
    optimizer.step(std::vector<Tensor>{full({1}, -0.7)});
    sync();
    reference.step(-0.7 + 0.5 * reference.p);
  }
  EXPECT_NEAR(w.item(), reference.p, 1e-6);
}

TEST_F(AdamWTest, RefusesGradientsThatDoNotBelong) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  AdamW optimizer({w}, {});
  expect_error(Errc::invalid_argument,
               {"AdamW::step: 0 gradients are given for 1 parameters", "optim_test.cpp:"},
               [&] { optimizer.step(std::vector<Tensor>{}); });
  expect_error(Errc::invalid_argument, {"grads[0] is f32[3], but its parameter is 'w' f32[2]"},
               [&] { optimizer.step(std::vector<Tensor>{full({3}, 1)}); });
}

TEST(Optimizer, RefusesAnEmptyParameterList) {
  const std::vector<Parameter> none;
  testing::expect_refusal({"AdamW: the parameter list is empty"}, [&](int& line) {
    line = __LINE__ + 1;
    AdamW(none, {});
  });
  testing::expect_refusal({"SGD: the parameter list is empty"}, [&](int& line) {
    line = __LINE__ + 1;
    const SGD optimizer(std::vector<ParameterGroup<SGD::Options>>{{none, {.lr = 1}}});
  });
}

TEST(AdamWOptions, RefusesWhatTorchRefuses) {
  const auto make = [](const AdamW::Options& options) { return [=] { AdamW({}, options); }; };
  expect_error(Errc::invalid_argument, {"AdamW: lr = -1"}, make({.lr = -1}));
  expect_error(Errc::invalid_argument, {"AdamW: beta1 = 1"}, make({.beta1 = 1}));
  expect_error(Errc::invalid_argument, {"AdamW: beta2 = -0.1"}, make({.beta2 = -0.1}));
  expect_error(Errc::invalid_argument, {"AdamW: eps = nan"}, make({.eps = NAN}));
  expect_error(Errc::invalid_argument, {"AdamW: weight_decay = -1"}, make({.weight_decay = -1}));
}

/// Returns an element after these steps of SGD in double, as torch/optim/sgd.py documents it line
/// by line.
double reference_sgd(double p, const SGD::Options& options, int steps) {
  double buffer = 0;
  for (int t = 0; t < steps; ++t) {
    double g = 3 * p * p + options.weight_decay * p;
    buffer = t == 0 ? g : options.momentum * buffer + g;
    g = options.nesterov ? g + options.momentum * buffer : buffer;
    p -= options.lr * g;
  }
  return p;
}

TEST_F(SGDTest, FollowsTorchsFormula) {
  const std::vector<SGD::Options> variants{
      {.lr = 0.05},
      {.lr = 0.05, .momentum = 0.9},
      {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1},
      {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}};
  for (const SGD::Options& options : variants) {
    Parameter w = make_parameter("w", Floats{1, -0.3F}, {2});
    SGD optimizer({w}, options);
    for (int step = 0; step < 4; ++step) {
      optimizer.step(grad(sum(w * w * w), std::vector{w}));
      sync();
    }
    const Floats values = w.to_vector();
    EXPECT_NEAR(values[0], reference_sgd(1, options, 4), 1e-6);
    EXPECT_NEAR(values[1], reference_sgd(-0.3F, options, 4), 1e-6);
    EXPECT_EQ(optimizer.state().size(), options.momentum > 0 ? 1U : 0U);
  }
}

TEST_F(SGDTest, RateIsAnInputSoThatNoStepIsANewProgram) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  SGD optimizer({w}, {.momentum = 0.5});
  for (int step = 0; step < 3; ++step) {
    optimizer.set_lr(0.1 * step);
    optimizer.step(std::vector{w * 1});
    sync();
  }
  EXPECT_EQ(fingerprint(runtime_.programs[1]), fingerprint(runtime_.programs[2]));
}

TEST(SGDOptions, RefusesWhatTorchRefuses) {
  expect_error(Errc::invalid_argument, {"SGD: momentum = -1"}, [] { SGD({}, {.momentum = -1}); });
  expect_error(Errc::invalid_argument, {"nesterov needs a momentum"},
               [] { SGD({}, {.nesterov = true}); });
}

TEST_F(ClipTest, ScalesAllGradientsToTheNorm) {
  std::vector<Tensor> grads{f32({3, 0}, {2}), f32({0, 4}, {1, 2})};
  EXPECT_NEAR(clip_by_global_norm(grads, 1).item(), 5, 1e-6);
  testing::expect_near(grads[0], {0.6, 0});
  testing::expect_near(grads[1], {0, 0.8});
}

TEST_F(ClipTest, LeavesSmallGradientsAsTheyAre) {
  std::vector<Tensor> grads{f32({3, 4}, {2})};
  clip_by_global_norm(grads, 10);
  EXPECT_EQ(grads[0].to_vector(), (Floats{3, 4}));
}

TEST_F(ClipTest, RefusesAnEmptyListAndANormOfZero) {
  std::vector<Tensor> grads;
  expect_error(Errc::invalid_argument, {"no gradients"}, [&] { clip_by_global_norm(grads, 1); });
  grads.push_back(f32({1}, {1}));
  expect_error(Errc::invalid_argument, {"max_norm 0"}, [&] { clip_by_global_norm(grads, 0); });
}

}  // namespace
}  // namespace weft::optim_test
