/// Tests gradients of values that have been read before.

#include <memory>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/norm_layers.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/ops/elementwise.hpp>
#include <weft/optim/gradients.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/sharding/presets.hpp>
#include <weft/tensor/compile.hpp>

#include "spmd/tensor/recording.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::read_test {
namespace {

using testing::expect_error;
using testing::f32;
using testing::i32;
using testing::SimulateRuntime;
using Floats = std::vector<float>;

class Read : public testing::TensorTest {
 protected:
  Parameter w_ = make_parameter("w", Floats{1, 2}, {2});
  Parameter v_ = make_parameter("v", Floats{3, 4}, {2});

  static Floats gradient(const Tensor& loss, const Tensor& wrt) {
    return grad(loss, std::vector{wrt})[0].to_vector();
  }
  static std::int64_t users(const Tensor& tensor) {
    return std::get<BufferPtr>(tensor.node()->storage).use_count();
  }
};

TEST_F(Read, AGradientIsTakenOfALossThatWasRead) {
  const Tensor loss = sum(w_ * w_ * v_);
  EXPECT_EQ(loss.item(), 19);
  EXPECT_EQ(gradient(loss, w_), (Floats{6, 16}));
  EXPECT_EQ(loss.item(), 19);
  sync();
  const Tensor next = sum(w_ * v_);
  EXPECT_EQ(gradient(next, w_), (Floats{3, 4}));
  ASSERT_EQ(runtime_.warnings.size(), 1U);
  EXPECT_NE(runtime_.warnings[0].find("repeats computations of the read at read_test"),
            std::string::npos);
}

TEST_F(Read, AKnownValueIsNeitherComputedNorReadAgain) {
  const Tensor loss = sum(w_ * w_);
  loss.item();
  const std::vector<Tensor> grads = grad(loss, std::vector{w_});
  const std::size_t runs = runtime_.programs.size();
  EXPECT_EQ(loss.item(), 5);
  EXPECT_EQ(runtime_.programs.size(), runs);
  sync();
  EXPECT_EQ(runtime_.programs.size(), runs + 1);
  EXPECT_EQ(runtime_.programs.back().outputs.size(), 1U);
  EXPECT_EQ(loss.item(), 5);
  EXPECT_EQ(grads[0].to_vector(), (Floats{2, 4}));
}

TEST_F(Read, AGradientFlowsThroughSeveralReads) {
  const Tensor hidden = w_ * 2;
  hidden.to_vector();
  const Tensor more = hidden + 1;
  more.to_vector();
  const Tensor loss = sum(more * more * v_);
  loss.item();
  loss.item();
  const std::vector<Tensor> grads = grad(loss, std::vector<Tensor>{v_, w_, hidden});
  EXPECT_EQ(grads[0].to_vector(), (Floats{9, 25}));
  EXPECT_EQ(grads[1].to_vector(), (Floats{36, 80}));
  EXPECT_EQ(grads[2].to_vector(), (Floats{18, 40}));
  // Another loss that uses the same values has its own gradient.
  EXPECT_EQ(gradient(sum(more * v_), w_), (Floats{6, 8}));
}

TEST_F(Read, AGradientThatEndsAtWhatWasReadComputesNothingAgain) {
  const Tensor hidden = w_ * 2;
  hidden.to_vector();
  EXPECT_EQ(gradient(sum(hidden * v_), v_), (Floats{2, 4}));
  EXPECT_EQ(gradient(sum(hidden * hidden), hidden), (Floats{4, 8}));
  EXPECT_TRUE(runtime_.warnings.empty());
}

TEST_F(Read, AGradientOfAGradientFlowsThroughReads) {
  const Tensor loss = sum(w_ * w_ * w_);
  loss.item();
  const Tensor first = grad(loss, std::vector{w_})[0];
  EXPECT_EQ(first.to_vector(), (Floats{3, 12}));
  EXPECT_EQ(gradient(sum(first * v_), w_), (Floats{18, 48}));
}

TEST_F(Read, AcrossStepsNoGradientFlows) {
  const Tensor state = w_ * 3;
  state.to_vector();
  sync();
  EXPECT_EQ(gradient(sum(state * v_), w_), (Floats{0, 0}));
  const Tensor loss = sum(w_ * w_);
  loss.item();
  sync();
  expect_error(Errc::invalid_argument, {"grad: the loss f32[] isn't being recorded"},
               [&] { grad(loss, std::vector{w_}); });
}

TEST_F(Read, VjpsAndJvpsFlowThroughReads) {
  const Tensor y = w_ * w_;
  y.to_vector();
  EXPECT_EQ(vjp(std::vector{y}, std::vector<Tensor>{v_}, std::vector<Tensor>{w_})[0].to_vector(),
            (Floats{6, 16}));
  const Tensor z = w_ * w_;
  z.to_vector();
  EXPECT_EQ(jvp(std::vector{z}, std::vector<Tensor>{w_}, std::vector<Tensor>{v_})[0].to_vector(),
            (Floats{6, 16}));
}

TEST_F(Read, ScalarsHaveTheValueThatTheReadHad) {
  Scalar scale(2);
  const Tensor loss = sum(w_ * scale);
  loss.item();
  scale.set(5);
  const Tensor other = sum(w_ * scale);
  EXPECT_EQ(gradient(loss + other, w_), (Floats{7, 7}));
}

TEST_F(Read, AnAssignmentAfterTheReadIsKept) {
  const Tensor loss = sum(w_ * w_);
  loss.item();
  v_.assign(v_ + 1);
  const Tensor other = sum(v_ * w_);
  EXPECT_EQ(gradient(loss + other, w_), (Floats{6, 9}));
  sync();
  EXPECT_EQ(v_.to_vector(), (Floats{4, 5}));
}

TEST_F(Read, ALossOfAnAssignedParameterIsRefusedWithBothLines) {
  const Tensor loss = sum(w_ * w_);
  loss.item();
  w_.assign(w_ + 1);
  const int line = __LINE__ - 1;
  testing::expect_refusal(
      {"grad: the loss depends on the value of 'w' f32[2] before it was assigned",
       fmt::format("at read_test.cpp:{}: take", line)},
      [&](int& at) {
        at = __LINE__ + 1;
        grad(loss, std::vector{w_});
      });
  w_.to_vector();
  testing::expect_refusal({"the value of 'w' f32[2] before it was assigned",
                           fmt::format("at read_test.cpp:{}, and", line)},
                          [&](int& at) {
                            at = __LINE__ + 1;
                            grad(loss, std::vector{w_});
                          });
  EXPECT_EQ(gradient(sum(w_ * w_), w_), (Floats{4, 6}));
}

TEST_F(Read, AGradientThroughOverwrittenStateIsRefusedWithBothLines) {
  const Tensor loss = sum(w_ * v_);
  w_.assign(w_ + v_);
  loss.item();
  const int line = __LINE__ - 1;
  testing::expect_refusal({fmt::format("computed for the read at read_test.cpp:{}", line),
                           "the same run has overwritten"},
                          [&](int& at) {
                            at = __LINE__ + 1;
                            grad(loss, std::vector{v_});
                          });
  // The next value of w_ has a gradient.
  EXPECT_EQ(gradient(sum(w_ * w_), w_), (Floats{8, 12}));
}

TEST_F(Read, AGradientFlowsThroughAnAssignedParameter) {
  w_.assign(v_ * v_);
  w_.to_vector();
  const Tensor loss = sum(w_ * 2);
  EXPECT_EQ(gradient(loss, v_), (Floats{12, 16}));
  w_.assign(w_ + v_);
  sync();
  EXPECT_EQ(w_.to_vector(), (Floats{12, 20}));
}

/// The value that a small buffer had before its update is kept for the gradient.
TEST_F(Read, AGradientFlowsPastUpdatedStatistics) {
  Parameter mean_of = make_buffer("mean", 10, {2});
  const Tensor loss = sum(w_ * w_ * mean_of);
  mean_of.assign(mean_of * 0.5 + w_ * 0.5);
  loss.item();
  EXPECT_EQ(gradient(loss, w_), (Floats{20, 40}));
  sync();
  EXPECT_EQ(mean_of.to_vector(), (Floats{5.5, 6}));
}

/// If a loop never ends a step, each read runs the last update and the next forward pass.
TEST_F(Read, ALoopThatNeverEndsAStepTrainsAsOneThatDoes) {
  const auto train = [&](const char* name, bool ends_steps) {
    Parameter p = make_parameter(name, Floats{1, 2}, {2});
    SGD optimizer({p}, {.lr = 0.0625, .momentum = 0.5});
    Floats losses;
    for (int i = 0; i < 5; ++i) {
      const Tensor loss = sum(p * p * v_);
      losses.push_back(loss.item<float>());
      optimizer.step(grad(loss, std::vector{p}));
      if (ends_steps) sync();
    }
    return losses;
  };
  EXPECT_EQ(train("p", false), train("q", true));
}

/// The discriminator's step and the read of its loss come before the generator's gradient.
TEST_F(Read, TwoOptimizersMayStepAroundARead) {
  SGD of_v({v_}, {.lr = 1});
  const Tensor made = w_ * w_;
  const Tensor first = sum(stop_gradient(made) * v_);
  of_v.step(grad(first, std::vector{v_}));
  EXPECT_EQ(first.item(), 19);
  EXPECT_EQ(v_.to_vector(), (Floats{2, 0}));
  EXPECT_EQ(gradient(sum(made * v_), w_), (Floats{4, 0}));
}

TEST_F(Read, AnEvaluationBetweenIsNotComputedAgain) {
  const Tensor loss = sum(w_ * w_);
  loss.item();
  for (int i = 0; i < 3; ++i) sum(exp(v_) * i).item();
  EXPECT_EQ(gradient(loss, w_), (Floats{2, 4}));
  for (OpId op = 0; op < runtime_.programs.back().num_ops(); ++op) {
    EXPECT_NE(runtime_.programs.back().kind(op), OpKind::exponential);
  }
}

TEST_F(Read, WhatWasReadIsFreedWithItsTensors) {
  const Tensor x = f32({5, 6}, {2});
  {
    const Tensor loss = sum(w_ * x);
    loss.item();
    EXPECT_EQ(users(x), 2);
  }
  EXPECT_EQ(users(x), 1);
  EXPECT_EQ(users(w_), 1);
  const Tensor loss = sum(w_ * x);
  loss.item();
  sync();
  EXPECT_EQ(users(x), 1);
  // argmax has no gradient, so its result doesn't keep x alive.
  const Tensor best = argmax(w_ * x, 0);
  best.item<std::int64_t>();
  EXPECT_EQ(users(x), 1);
}

/// The loop reads its state in each iteration but never ends a step, so its chain of values must
/// not grow.
TEST_F(Read, AChainOfReadsKeepsABoundedAmount) {
  std::vector<std::shared_ptr<Recording>> chain;
  Recordings recordings;
  for (std::uint64_t number = 1; number <= 10; ++number) {
    auto next = std::make_shared<Recording>();
    next->number = number;
    next->bytes = 100;
    chain.push_back(next);
    recordings.add(next, 450);
  }
  EXPECT_EQ(recordings.since(0).size(), 5U);
  EXPECT_EQ(recordings.since(8).size(), 3U);
  EXPECT_TRUE(chain.front()->is_dropped);
  recordings.forget();
  EXPECT_TRUE(recordings.since(0).empty());
}

TEST_F(Read, ALongChainOfReadsIsFreed) {
  std::shared_ptr<Recording> last;
  for (int i = 0; i < 50'000; ++i) {
    auto next = std::make_shared<Recording>();
    auto then = std::make_shared<TensorNode>();
    then->origin = std::exchange(last, nullptr);
    next->inputs.push_back({{}, std::move(then)});
    last = std::move(next);
  }
  const std::weak_ptr<Recording> alive = last;
  last.reset();
  EXPECT_TRUE(alive.expired());
}

TEST_F(Read, ScansCondsAndCheckpointsAreRecordedAgain) {
  const auto run = [&](bool reads) {
    const Tensor items = f32({1, 2, 3, 4}, {2, 2});
    const auto [state, stacked] = scan(
        [&](const Tensor& h, const Tensor& item) {
          const Tensor next = checkpoint([&] { return tanh(h * w_ + item); });
          return std::pair(next, next * v_);
        },
        w_ * 0.1, items);
    const Tensor chosen = cond(
        greater(sum(v_), 0), [&](const Tensor& x) { return x * w_; },
        [](const Tensor& x) { return x; }, state);
    if (reads) chosen.to_vector();
    const Tensor loss = sum(checkpoint([&] { return exp(chosen * v_); })) + sum(stacked);
    if (reads) loss.item();
    const std::vector<Tensor> grads = grad(loss, std::vector<Tensor>{w_, v_});
    const std::vector<Floats> values{grads[0].to_vector(), grads[1].to_vector()};
    sync();
    return values;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_F(Read, InAFunctionOfAScanItIsRefused) {
  const Tensor hidden = w_ * 2;
  hidden.to_vector();
  expect_error(Errc::invalid_argument,
               {"outside of the function of a loop", "take the gradient before the read"}, [&] {
                 scan(
                     [&](const Tensor& h, const Tensor&) {
                       const Tensor loss = sum(h * hidden);
                       return std::pair(h + grad(loss, std::vector{w_})[0], loss);
                     },
                     v_, f32({1, 2}, {2}));
               });
}

constexpr std::int64_t kBatch = 8;

struct Net : Module {
  Linear fc1{*this, "fc1", {.in_features = 4, .out_features = 16}};
  BatchNorm1d bn{*this, "bn", {.num_features = 16}};
  Dropout drop{*this, "drop", 0.3};
  Linear fc2{*this, "fc2", {.in_features = 16, .out_features = 2}};

  Tensor hidden(const Tensor& x) const { return drop(relu(bn(fc1(x)))); }
};

enum class Reading { never, loss, all, in_compiled, in_parts };

/// Trains for six steps. Returns the losses and the last parameters.
Floats train(Runtime& runtime, Reading reading, bool parts = false) {
  const RuntimeScope scope(runtime);
  manual_seed(3);
  Net net;
  if (const Mesh* mesh = runtime.mesh()) {
    tensor_parallel(net, *mesh,
                    {{"fc1", TensorParallelStyle::columns}, {"fc2", TensorParallelStyle::rows}});
  }
  AdamW optimizer(net.parameters(), {.lr = 0.05});
  Floats values;
  const auto loss_of = [&](const Tensor& x, const Tensor& y) {
    const Tensor hidden = net.hidden(x);
    if (reading == Reading::all) hidden.to_vector();
    const Tensor logits = net.fc2(hidden);
    const Tensor loss = cross_entropy(logits, y);
    if (reading != Reading::never) loss.item();
    if (reading == Reading::all) mean(logits).item();
    return loss;
  };
  const auto train_on = [&](const Tensor& x, const Tensor& y) {
    if (parts) {
      const auto of_part = [&](std::span<const Tensor> part) { return loss_of(part[0], part[1]); };
      const auto [loss, grads] = micro_batches(2, std::vector{x, y}, net.parameters(), of_part);
      optimizer.step(grads);
      return loss;
    }
    const Tensor loss = loss_of(x, y);
    optimizer.step(grad(loss, net.parameters()));
    return loss;
  };
  auto compiled = compile(train_on);
  for (int step = 0; step < 6; ++step) {
    Floats x;
    std::vector<std::int32_t> y;
    for (int i = 0; i < kBatch; ++i) {
      const float a = static_cast<float>((7 * (step * 8 + i) + 3) % 5) - 2.2F;
      x.insert(x.end(), {a, a * a, 0.5F * a, 1});
      y.push_back(a > 0 ? 1 : 0);
    }
    Tensor batch = f32(x, {kBatch, 4});
    if (runtime.mesh() != nullptr) data_parallel({batch}, *runtime.mesh());
    const Tensor labels = i32(y, {kBatch});
    if (reading == Reading::in_compiled) {
      values.push_back(compiled(batch, labels).item<float>());
    } else {
      const Tensor loss = train_on(batch, labels);
      sync();
      values.push_back(loss.item<float>());
    }
  }
  for (const Parameter& parameter : net.parameters()) {
    const Floats elements = parameter.to_vector();
    values.insert(values.end(), elements.begin(), elements.end());
  }
  for (const Parameter& buffer : net.buffers()) {
    if (buffer.type().dtype != DType::f32) continue;
    const Floats elements = buffer.to_vector();
    values.insert(values.end(), elements.begin(), elements.end());
  }
  return values;
}

TEST(ReadTraining, HasTheBitsOfTheLoopThatReadsNothing) {
  for (const bool parts : {false, true}) {
    testing::InterpretRuntime unread;
    const Floats expected = train(unread, Reading::never, parts);
    for (const Reading reading : {Reading::loss, Reading::all, Reading::in_compiled}) {
      testing::InterpretRuntime runtime;
      EXPECT_EQ(train(runtime, reading, parts), expected) << static_cast<int>(reading) << parts;
      EXPECT_EQ(runtime.warnings.size(), 1U);
    }
  }
}

TEST(ReadTraining, HasTheBitsOfTheLoopThatReadsNothingOnFourChips) {
  for (const bool parts : {false, true}) {
    SimulateRuntime unread(Mesh({2, 2}, {"data", "model"}));
    const Floats expected = train(unread, Reading::never, parts);
    for (const Reading reading : {Reading::loss, Reading::all, Reading::in_compiled}) {
      SimulateRuntime runtime(Mesh({2, 2}, {"data", "model"}));
      EXPECT_EQ(train(runtime, reading, parts), expected) << static_cast<int>(reading) << parts;
    }
  }
}

}  // namespace
}  // namespace weft::read_test
