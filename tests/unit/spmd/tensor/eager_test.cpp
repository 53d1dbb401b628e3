/// Tests eager loops, in which each op runs when it is recorded.

#include <sstream>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/ops/elementwise.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/tensor/compile.hpp>
#include <weft/tensor/print.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::eager_test {
namespace {

using testing::f32;
using testing::i32;
using testing::InterpretRuntime;
using Floats = std::vector<float>;

class Eager : public ::testing::Test {
 protected:
  InterpretRuntime runtime_;
  RuntimeScope scope_{runtime_, true};
  Parameter w_ = make_parameter("w", Floats{1, 2}, {2});
};

TEST_F(Eager, EachOpRunsWhenItIsRecorded) {
  const Tensor x = f32({3, 4}, {2});
  EXPECT_EQ(runtime_.programs.size(), 0U);
  const Tensor y = x + w_;
  EXPECT_EQ(runtime_.programs.size(), 1U);
  const Tensor z = y * y;
  EXPECT_EQ(runtime_.programs.size(), 2U);
  EXPECT_EQ(runtime_.programs.back().num_ops(), 1U);
  EXPECT_EQ(z.to_vector(), (Floats{16, 36}));
  EXPECT_EQ(runtime_.programs.size(), 2U);
  sync();
  EXPECT_EQ(runtime_.programs.size(), 2U);
  EXPECT_EQ(runtime_.steps, 1);
}

TEST_F(Eager, AnAssignmentIsSeenAtOnce) {
  w_.assign(w_ * 3);
  EXPECT_EQ(w_.to_vector(), (Floats{3, 6}));
  EXPECT_EQ((w_ + 1).to_vector(), (Floats{4, 7}));
}

TEST_F(Eager, APrintedTensorEndsNoStepAndKeepsItsGradient) {
  const Tensor hidden = tanh(w_ * 0.5);
  std::ostringstream printed;
  printed << hidden;
  EXPECT_NE(printed.str().find("0.46"), std::string::npos) << printed.str();
  const Tensor loss = sum(hidden * hidden);
  loss.item();
  EXPECT_EQ(runtime_.steps, 0);
  const Floats found = grad(loss, std::vector{w_})[0].to_vector();
  EXPECT_NEAR(found[0], 0.46212 * (1 - 0.46212 * 0.46212), 1e-4);
  EXPECT_TRUE(runtime_.warnings.empty());
}

/// A runtime that throws if an element of a value is 13.
class UnluckyRuntime : public InterpretRuntime {
 public:
  RunResult run(const Program& program, const Fingerprint& key, std::span<const Binding> inputs,
                const RunSite& site) override {
    RunResult result = InterpretRuntime::run(program, key, inputs, site);
    for (const BufferPtr& output : result.outputs) {
      const auto& elements = static_cast<const testing::ElementBuffer&>(*output).elements;
      if (std::ranges::find(elements, 13) != elements.end()) failed_ = file_line(site.loc);
    }
    return result;
  }
  void wait() override {
    if (!failed_.empty()) fail(Errc::invalid_argument, "13 at {}", std::exchange(failed_, ""));
  }

 private:
  std::string failed_;
};

TEST(EagerFailure, WhatAnOpThrowsComesOutOfItsLine) {
  UnluckyRuntime runtime;
  const RuntimeScope scope(runtime, true);
  const Tensor x = f32({6, 4}, {2});
  const Tensor y = x * 2;
  const int line = __LINE__ + 2;
  testing::expect_error(Errc::invalid_argument, {fmt::format("13 at eager_test.cpp:{}", line)},
                        [&] { y + 1; });
  EXPECT_EQ((y + 2).to_vector(), (Floats{14, 10}));
}

TEST_F(Eager, FunctionsOfLoopsAndCompiledOnesWork) {
  auto twice = compile([&](const Tensor& x) { return x * 2 + w_; });
  EXPECT_EQ(twice(f32({1, 1}, {2})).to_vector(), (Floats{3, 4}));
  EXPECT_EQ(runtime_.steps, 1);
  const auto [state, stacked] = scan(
      [&](const Tensor& h, const Tensor& item) {
        const Tensor next = h * w_ + item;
        return std::pair(next, sum(next));
      },
      f32({0, 0}, {2}), f32({1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(state.to_vector(), (Floats{4, 8}));
  EXPECT_EQ(stacked.to_vector(), (Floats{3, 12}));
  EXPECT_EQ(grad(sum(state), std::vector{w_})[0].to_vector(), (Floats{1, 2}));
}

struct Net : Module {
  Linear fc1{*this, "fc1", {.in_features = 4, .out_features = 8}};
  Dropout drop{*this, "drop", 0.3};
  Linear fc2{*this, "fc2", {.in_features = 8, .out_features = 2}};

  Tensor operator()(const Tensor& x) const {
    return fc2(checkpoint([&] { return drop(relu(fc1(x))); }));
  }
};

Floats train(bool is_eager) {
  InterpretRuntime runtime;
  const RuntimeScope scope(runtime, is_eager);
  manual_seed(3);
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 0.05});
  Floats losses;
  for (int step = 0; step < 5; ++step) {
    Floats x;
    for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>((5 * i + step) % 7) - 3);
    const Tensor loss = cross_entropy(net(f32(x, {4, 4})),
                                      to_device(std::vector<std::int64_t>{0, 1, -100, 1}, {4}));
    optimizer.step(grad(loss, net.parameters()));
    sync();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

TEST(EagerTraining, GivesTheLossesOfRecordedSteps) { EXPECT_EQ(train(true), train(false)); }

}  // namespace
}  // namespace weft::eager_test
