/// Tests that each gradient belongs to its parameter all the way from grad() to the optimizer.

#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/losses.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/optim/gradients.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/tensor/compile.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::gradient_owners_test {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::f32;
using Floats = std::vector<float>;

/// A fixture with two parameters of the same type. The gradient of each element of a is 1, and of b
/// is 10.
class GradientOwners : public testing::TensorTest {
 protected:
  Tensor loss() const { return sum(a) + sum(b) * 10.0; }
  std::vector<Tensor> grads() const { return grad(loss(), std::vector{a, b}); }
  void expect_values(double of_a, double of_b) const {
    expect_near(a, {of_a, of_a});
    expect_near(b, {of_b, of_b});
  }

  Parameter a = make_parameter("a", Floats{0, 0}, {2});
  Parameter b = make_parameter("b", Floats{0, 0}, {2});
};

TEST_F(GradientOwners, GoToTheirParametersInGroupsOfAnotherOrder) {
  SGD optimizer(std::vector<ParameterGroup<SGD::Options>>{{{b}, {.lr = 1}}, {{a}, {.lr = 1}}});
  optimizer.step(grads());
  sync();
  expect_values(-1, -10);
}

TEST_F(GradientOwners, KeepThemWhenClipped) {
  SGD optimizer({b, a}, {.lr = 1});
  std::vector<Tensor> clipped = grads();
  clip_by_value(clipped, 2);
  clip_by_global_norm(clipped, 1e9);
  optimizer.step(clipped);
  sync();
  expect_values(-1, -2);
}

TEST_F(GradientOwners, KeepThemWhenAccumulatedOrOfMicroBatches) {
  SGD optimizer({b, a}, {.lr = 1});
  GradientAccumulation accumulation({b, a});
  accumulation.add(grads());
  optimizer.step(accumulation.take());
  sync();
  expect_values(-1, -10);
  const auto parts =
      micro_batches(2, std::vector{f32({1, 3}, {2})}, std::vector{a, b},
                    [&](std::span<const Tensor> part) { return mean(part[0] * loss()); });
  optimizer.step(parts.grads);
  sync();
  expect_values(-3, -30);
}

TEST_F(GradientOwners, KeepThemThroughCompiledFunctions) {
  SGD optimizer({b, a}, {.lr = 1});
  auto make = compile([&](const Tensor& factor) {
    return grad(loss() * sum(factor), std::vector{a, b});
  });
  auto apply = compile([&](const std::vector<Tensor>& given) {
    optimizer.step(given);
    return sum(a);
  });
  for (int step = 1; step <= 3; ++step) {
    const std::vector<Tensor> made = make(f32({1}, {1}));
    apply(made);
    expect_values(-step, -10 * step);
  }
  const std::vector<Tensor> made = make(f32({1}, {1}));
  apply(std::vector{made[1], made[0]});
  expect_values(-4, -40);
}

TEST_F(GradientOwners, BelongByTheirPlaceIfTheyWereComputed) {
  SGD optimizer({a, b}, {.lr = 1});
  const std::vector<Tensor> given = grads();
  optimizer.step(std::vector{given[0] * 2.0, given[1] * 2.0});
  sync();
  expect_values(-2, -20);
}

TEST_F(GradientOwners, AreRefusedByNameWhereTheyAreOfNoParameterHere) {
  SGD optimizer({a}, {.lr = 1});
  expect_error(Errc::invalid_argument,
               {"SGD::step: grads[0] is the gradient of 'b' f32[2]", "'a'", "grads[0] * 1.0"},
               [&] { optimizer.step(std::vector{grads()[1]}); });
  SGD both({a, b}, {.lr = 1});
  const std::vector<Tensor> given = grads();
  expect_error(Errc::invalid_argument, {"grads[1] is the gradient of 'a' f32[2]"}, [&] {
    both.step(std::vector{given[0], given[0]});
  });
  expect_error(Errc::invalid_argument, {"grads[0] is a computed tensor", "'a', but grads[1]"}, [&] {
    both.step(std::vector{given[0] * 1.0, given[0]});
  });
  expect_error(Errc::invalid_argument, {"'b' f32[2] has no gradient"}, [&] {
    both.step(std::vector{given[0], Tensor()});
  });
}

TEST_F(GradientOwners, MayBeEmptyForFrozenParametersInAnyOrder) {
  a.requires_grad(false);
  SGD optimizer({b, a}, {.lr = 1});
  optimizer.step(grads());
  sync();
  expect_values(0, -10);
}

TEST_F(GradientOwners, OfATiedParameterAreItsSum) {
  Parameter other = a;
  SGD optimizer({b, a}, {.lr = 1});
  optimizer.step(grad(sum(a) + sum(other * 2.0) + sum(b), std::vector{a, b}));
  sync();
  expect_values(-3, -1);
}

/// A parameter without a gradient is skipped, as torch's optimizers do.
TEST_F(GradientOwners, LeaveAParameterAsItIsOnWhichTheLossDoesNotDepend) {
  const Parameter unused = make_parameter("unused", Floats{4}, {1});
  const std::vector<Parameter> all{a, unused};
  AdamW optimizer(all, {.lr = 0.1, .weight_decay = 0.5});
  GradientAccumulation accumulation(all);
  for (int step = 0; step < 3; ++step) {
    std::vector<Tensor> given = grad(sum(a), all);
    EXPECT_EQ(given[1].to_vector(), Floats{0});
    given = grad(sum(a), all);
    clip_by_global_norm(given, 1);
    if (step == 1) {
      accumulation.add(given);
      given = accumulation.take();
    } else if (step == 2) {
      given = micro_batches(2, std::vector{f32({1, 3}, {2})}, all, [&](std::span<const Tensor> x) {
                return mean(x[0]) * sum(a);
              }).grads;
    }
    optimizer.step(given);
    sync();
    EXPECT_EQ(unused.item(), 4) << step;
  }
}

// The tests below cover losses that are weighted means.

/// A weighted mean of (w * x)^2 over rows.
struct Weighted {
  Parameter w = make_parameter("w", Floats{1}, {1});

  Tensor operator()(const Tensor& x, const Tensor& weight) const {
    return mse_loss(x * w, full(x.shape(), 0), {.sample_weight = weight});
  }
};

TEST_F(GradientOwners, OfMicroBatchesWithUnequalWeightsAreThoseOfTheBatch) {
  Weighted loss;
  const Tensor x = f32({1, 2, 3, 4}, {4});
  const std::vector<Parameter> all{loss.w};
  // With the first weights, all rows of the second micro-batch have the weight 0.
  for (const Floats& weights : {Floats{1, 0, 0.5, 0}, Floats{1, 1, 0, 1}, Floats{2, 2, 2, 2}}) {
    const Tensor weight = f32(weights, {4});
    const Tensor whole = loss(x, weight);
    const std::vector<Tensor> expected = grad(whole, all);
    const auto parts =
        micro_batches(2, std::vector{x, weight}, all,
                      [&](std::span<const Tensor> part) { return loss(part[0], part[1]) * 1.0; });
    EXPECT_NEAR(parts.loss.item(), whole.item(), 1e-6);
    EXPECT_NEAR(parts.grads[0].item(), expected[0].item(), 1e-6);
  }
}

TEST_F(GradientOwners, OfMicroBatchesWithIgnoredLabelsAreThoseOfTheBatch) {
  Parameter w = make_parameter("w", Floats{0.5, -1, 2, 0.25}, {2, 2});
  const std::vector<Parameter> all{w};
  const Tensor x = f32({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const std::vector<std::int32_t> labels{0, -100, 1, -100};
  const Tensor y = testing::i32(labels, {4});
  const auto loss_of = [&](const Tensor& rows, const Tensor& of) {
    return cross_entropy(matmul(rows, w) * 0.1, of, {.ignore_index = -100});
  };
  const Tensor whole = loss_of(x, y);
  const std::vector<Tensor> expected = grad(whole, all);
  const auto parts = micro_batches(2, std::vector{x, y}, all, [&](std::span<const Tensor> part) {
    return loss_of(part[0], part[1]);
  });
  EXPECT_NEAR(parts.loss.item(), whole.item(), 1e-6);
  const Floats found = parts.grads[0].to_vector();
  const Floats right = expected[0].to_vector();
  for (std::size_t i = 0; i < right.size(); ++i) EXPECT_NEAR(found[i], right[i], 1e-6);
}

TEST_F(GradientOwners, OfALossThatContainsAMeanOverWhatCountsAreRefused) {
  Weighted loss;
  const Tensor x = f32({1, 2, 3, 4}, {4});
  const Tensor weight = f32({1, 0, 1, 1}, {4});
  const std::vector<Parameter> all{loss.w};
  expect_error(
      Errc::invalid_argument,
      {"micro_batches: the loss contains a division by a count of its data at gradient_owners_test",
       "sum / count"},
      [&] {
        micro_batches(2, std::vector{x, weight}, all, [&](std::span<const Tensor> part) {
          return loss(part[0], part[1]) + mean(loss.w * loss.w);
        });
      });
  GradientAccumulation accumulation(all);
  expect_error(
      Errc::invalid_argument,
      {"add: the loss contains a division by a count of its data at", "add(grads, weight)"},
      [&] { accumulation.add(grad(loss(x, weight) + sum(loss.w), all)); });
}

TEST_F(GradientOwners, AccumulateAsTheirLossesCount) {
  Weighted loss;
  const std::vector<Parameter> all{loss.w};
  GradientAccumulation accumulation(all);
  const std::vector<Floats> weights{{1, 0}, {0, 0}, {0.5, 1}};
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {6});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto row = static_cast<float>(2 * i);
    accumulation.add(grad(loss(f32({row + 1, row + 2}, {2}), f32(weights[i], {2})), all));
    if (i < 2) sync();
  }
  const double found = accumulation.take()[0].item();
  const Tensor whole = loss(x, f32({1, 0, 0, 0, 0.5, 1}, {6}));
  EXPECT_NEAR(found, grad(whole, all)[0].item(), 1e-5);
}

TEST_F(GradientOwners, AccumulateAsTheGivenWeightsSay) {
  Weighted loss;
  const std::vector<Parameter> all{loss.w};
  GradientAccumulation accumulation(all);
  const Tensor one = f32({1}, {1});
  const Tensor more = f32({2, 3, 4}, {3});
  const auto plain = [&](const Tensor& x) { return mean(x * loss.w); };
  accumulation.add(grad(plain(one), all));
  expect_error(Errc::invalid_argument, {"is the mean over 3 elements, but was the mean over 1"},
               [&] { accumulation.add(grad(plain(more), all)); });
  accumulation.add(grad(plain(more), all), scalar(3));
  EXPECT_NEAR(accumulation.take()[0].item(), 10.0 / 4, 1e-6);
}

TEST_F(GradientOwners, AreNotTakenBeforeAnyWasAdded) {
  GradientAccumulation accumulation({a});
  expect_error(Errc::invalid_argument, {"GradientAccumulation::take: nothing was added"},
               [&] { accumulation.take(); });
  accumulation.add(std::vector<Tensor>{f32({1, 2}, {2})});
  accumulation.take();
  sync();
  expect_near(accumulation.take()[0], {0, 0});  // nothing was added since the last take()
}

TEST_F(GradientOwners, ForgetWithEachTakeWhatTheirLossesUsed) {
  const std::vector<Parameter> all{a, b};
  GradientAccumulation accumulation(all);
  const auto is_b_used = [&](bool first, bool second) {
    for (const bool uses : {first, second}) {
      accumulation.add(grad(uses ? sum(a) + sum(b) : sum(a), all));
      sync();
    }
    const bool is_used = accumulation.take()[1].node()->gradient->is_used;
    sync();
    return is_used;
  };
  EXPECT_TRUE(is_b_used(false, true));
  EXPECT_FALSE(is_b_used(false, false));
  EXPECT_TRUE(is_b_used(true, false));
}

TEST_F(GradientOwners, OfACountedLossAreRefusedAfterItsSyncThatAreOfNoQuotientToo) {
  Weighted loss;
  const std::vector<Parameter> all{loss.w};
  GradientAccumulation accumulation(all);
  const auto grads = grad(loss(f32({1, 2}, {2}), f32({1, 0}, {2})) + sum(loss.w), all);
  sync();
  expect_error(Errc::invalid_argument,
               {"the loss contains a division by a count of its data at gradient_owners_test"},
               [&] { accumulation.add(grads); });
}

TEST(EagerGradients, AccumulateAsTheirLossesCount) {
  testing::InterpretRuntime runtime;
  const RuntimeScope scope(runtime, true);
  Weighted loss;
  const std::vector<Parameter> all{loss.w};
  GradientAccumulation accumulation(all);
  accumulation.add(grad(loss(f32({1, 2}, {2}), f32({1, 0}, {2})), all));
  accumulation.add(grad(loss(f32({3, 4}, {2}), f32({0.5, 1}, {2})), all));
  const double found = accumulation.take()[0].item();
  const Tensor whole = loss(f32({1, 2, 3, 4}, {4}), f32({1, 0, 0.5, 1}, {4}));
  EXPECT_NEAR(found, grad(whole, all)[0].item(), 1e-5);
  expect_error(Errc::invalid_argument, {"add(grads, weight)"}, [&] {
    accumulation.add(grad(loss(f32({1, 2}, {2}), f32({1, 0}, {2})) + sum(loss.w), all));
  });
}

// The tests below cover the number of updates that each parameter has had.

TEST_F(GradientOwners, CountTheStepsOfEachParameterAsTorch) {
  const AdamW::Options options{.lr = 0.1, .weight_decay = 0};
  AdamW optimizer({a, b}, options);
  Parameter alone = make_parameter("alone", Floats{0, 0}, {2});
  AdamW reference({alone}, options);
  b.requires_grad(false);
  for (int step = 0; step < 3; ++step) {
    optimizer.step(grads());
    sync();
  }
  EXPECT_EQ(b.to_vector(), (Floats{0, 0}));
  b.requires_grad(true);
  for (int step = 0; step < 3; ++step) {
    optimizer.step(grads());
    reference.step(grad(sum(alone) * 10.0, std::vector{alone}));
    sync();
    EXPECT_EQ(b.to_vector(), alone.to_vector()) << step;
  }
  // The parameter's own bias corrections are part of the state, as are those of its group.
  std::vector<std::string> names;
  for (const Parameter& state : optimizer.state()) names.push_back(state.name());
  EXPECT_EQ(std::ranges::count(names, "b.own_bias_correction1"), 1);
  EXPECT_EQ(std::ranges::count(names, "b.own_bias_correction2"), 1);
}

TEST_F(GradientOwners, CountNoStepsOfAGroupThatTookNone) {
  Parameter alone = make_parameter("alone", Floats{0, 0}, {2});
  const Adam::Options options{.lr = 0.1};
  Adam optimizer(std::vector<ParameterGroup<Adam::Options>>{{{a}, options}, {{b}, options}});
  Adam reference({alone}, options);
  b.requires_grad(false);
  optimizer.step(grads());
  sync();
  b.requires_grad(true);
  optimizer.step(grads());
  reference.step(grad(sum(alone) * 10.0, std::vector{alone}));
  sync();
  EXPECT_EQ(b.to_vector(), alone.to_vector());
  EXPECT_EQ(optimizer.state().size(), 8U);
}

}  // namespace
}  // namespace weft::gradient_owners_test
