#include <weft/tensor/compile.hpp>

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/ops/elementwise.hpp>
#include <weft/optim/optimizer.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::compile_test {
namespace {

using testing::expect_error;
using testing::f32;
using testing::SimulateRuntime;
using Floats = std::vector<float>;

class Compile : public ::testing::Test {
 protected:
  SimulateRuntime runtime_{Mesh({2, 2}, {"data", "model"})};
  RuntimeScope scope_{runtime_};
};

TEST_F(Compile, TracesOnceForEachShapeAndRunsWhatItTraced) {
  int traced = 0;
  auto f = compile([&](const Tensor& x, const Tensor& y) {
    ++traced;
    return x * 2 + y;
  });
  EXPECT_EQ(f(f32({1, 2}, {2}), f32({10, 20}, {2})).to_vector(), (Floats{12, 24}));
  EXPECT_EQ(f(f32({3, 4}, {2}), f32({1, 1}, {2})).to_vector(), (Floats{7, 9}));
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(f(f32({1}, {1}), f32({0}, {1})).to_vector(), (Floats{2}));
  EXPECT_EQ(traced, 2);
  EXPECT_EQ(f(f32({5, 6}, {2}), f32({0, 0}, {2})).to_vector(), (Floats{10, 12}));
  EXPECT_EQ(traced, 2);
  EXPECT_EQ(runtime_.steps, 4);
}

TEST_F(Compile, TwoResultsAndOneOperandTwiceAndHostValues) {
  auto f = compile([](const Tensor& x, const std::vector<Tensor>& more, int times) {
    return std::tuple{x * times, more[0] - more[1]};
  });
  const Tensor a = f32({1, 2}, {2});
  const auto [b, c] = f(a, std::vector{a, a}, 3);
  EXPECT_EQ(b.to_vector(), (Floats{3, 6}));
  EXPECT_EQ(c.to_vector(), (Floats{0, 0}));
  // Another host value makes another program. So do operands that are now different tensors.
  const auto [d, e] = f(a, std::vector{a, f32({5, 5}, {2})}, 4);
  EXPECT_EQ(d.to_vector(), (Floats{4, 8}));
  EXPECT_EQ(e.to_vector(), (Floats{-4, -3}));
}

/// Trains for six steps of AdamW with a falling rate, and returns their losses.
template <typename MakeStep>
std::vector<double> train(MakeStep make_step) {
  manual_seed(3);
  struct Net : Module {
    Linear fc{*this, "fc", {.in_features = 2, .out_features = 1}};
  } net;
  AdamW optimizer(net.parameters(), {.lr = 0.1});
  auto step = make_step([&](const Tensor& x, const Tensor& y) {
    const Tensor error = net.fc(x) - y;
    const Tensor loss = mean(error * error);
    optimizer.step(grad(loss, net.parameters()));
    return loss;
  });
  std::vector<double> losses;
  for (int i = 0; i < 6; ++i) {
    const auto t = static_cast<float>(i);
    optimizer.set_lr(0.1 / (1 + i));
    losses.push_back(step(f32({t, 1, 1, t}, {2, 2}), f32({1, -1}, {2, 1})).item());
  }
  return losses;
}

TEST_F(Compile, TrainsAsTheLazyLoopDoes) {
  const std::vector<double> lazy = train([](auto body) {
    return [body](const Tensor& x, const Tensor& y) {
      const Tensor loss = body(x, y);
      sync();
      return loss;
    };
  });
  const std::vector<double> compiled = train([](auto body) { return compile(body); });
  EXPECT_EQ(lazy, compiled);
  EXPECT_NE(lazy[1], lazy[0]);
}

TEST_F(Compile, HostValuesCountToTheBit) {
  auto f = compile([](const Tensor& x, double factor) {
    return std::tuple{x * factor, x * factor};
  });
  const Tensor x = f32({1e8F}, {1});
  for (const double factor : {1e-7, 2e-7, 1e-7}) {
    const auto [a, b] = f(x, factor);
    EXPECT_NEAR(a.item(), 1e8 * factor, 1e-3);
    EXPECT_EQ(b.item(), a.item());
  }
}

TEST_F(Compile, WhatCouldNotBeCompiledIsTriedAgain) {
  auto f = compile([](const Tensor& x) { return x * 2; }, {.max_programs = 1});
  EXPECT_EQ(f(f32({1}, {1})).item(), 2);
  for (int i = 0; i < 2; ++i) {
    expect_error(Errc::invalid_argument, {"max_programs = 1"}, [&] { f(f32({1, 2}, {2})); });
  }
  auto nothing = compile([](const Tensor&) {});
  nothing(f32({1}, {1}));
  nothing(f32({1}, {1}));
}

TEST_F(Compile, RandomNumbersAreNotRepeatedBesideTheFunction) {
  auto compiled = compile([] { return rand({4}); }, {.ends_step = false});
  std::vector<std::vector<Floats>> found;
  for (int step = 0; step < 3; ++step) {
    found.push_back({compiled().to_vector(), rand({4}).to_vector(), compiled().to_vector()});
    EXPECT_NE(found.back()[0], found.back()[1]);
    EXPECT_NE(found.back()[0], found.back()[2]);
    EXPECT_NE(found.back()[1], found.back()[2]);
    sync();
  }
  EXPECT_NE(found[0], found[1]);
}

TEST_F(Compile, RandomNumbersAreThoseOfTheStep) {
  const auto draw = [] { return rand({4}); };
  auto compiled = compile(draw);
  std::vector<Floats> found;
  for (int step = 0; step < 3; ++step) found.push_back(compiled().to_vector());
  EXPECT_NE(found[0], found[1]);
  EXPECT_NE(found[1], found[2]);
  SimulateRuntime other(Mesh({3}, {"data"}));
  const RuntimeScope scope(other);
  for (int step = 0; step < 3; ++step) {
    const Tensor lazy = draw();
    sync();
    EXPECT_EQ(lazy.to_vector(), found[static_cast<std::size_t>(step)]) << "step " << step;
  }
}

TEST_F(Compile, AParameterMayBeAnArgumentAndAResult) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  auto grow = compile([](Parameter p) -> Tensor {
    p.assign(p * 2);
    return p;
  });
  EXPECT_EQ(grow(w).to_vector(), (Floats{2, 4}));
  EXPECT_EQ(grow(w).to_vector(), (Floats{4, 8}));
  EXPECT_EQ(w.to_vector(), (Floats{4, 8}));
}

TEST_F(Compile, WhatItReadsBesidesIsOfTheFirstCallButForScalarsAndParameters) {
  Tensor table = f32({1, 1}, {2});
  Scalar rate(2);
  auto f = compile([&](const Tensor& x) { return x * rate + table; });
  EXPECT_EQ(f(f32({1, 2}, {2})).to_vector(), (Floats{3, 5}));
  table = f32({100, 100}, {2});
  rate.set(3);
  EXPECT_EQ(f(f32({1, 2}, {2})).to_vector(), (Floats{4, 7}));
}

TEST_F(Compile, OnlyWhatItReturnsComesOut) {
  Tensor escaped;
  auto f = compile([&](const Tensor& x) {
    escaped = x * 3;
    return x * 2;
  });
  f(f32({1, 2}, {2}));
  EXPECT_EQ(runtime_.programs.back().outputs.size(), 1U);
  expect_error(Errc::invalid_argument, {"was never computed"}, [&] { escaped.to_vector(); });
}

TEST_F(Compile, AReadInTheMiddleIsRefusedWithFullGraphAndElseTracesEveryTime) {
  int calls = 0;
  const auto body = [&](const Tensor& x) {
    ++calls;
    return sum(x).item() > 0 ? x : -x;
  };
  auto whole = compile(body, {.full_graph = true});
  expect_error(Errc::invalid_argument,
               {"read at compile_test.cpp:", "function compiled at compile_test.cpp:"},
               [&] { whole(f32({1}, {1})); });
  auto parts = compile(body);
  calls = 0;
  EXPECT_EQ(parts(f32({2}, {1})).item(), 2);
  EXPECT_EQ(parts(f32({-3}, {1})).item(), 3);
  EXPECT_EQ(calls, 2);
}

TEST_F(Compile, WhatThrowsLeavesNothingBehind) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  auto f = compile([&](bool fails) {
    w.assign(w + 1);
    if (fails) throw std::runtime_error("no");
  });
  EXPECT_THROW(f(true), std::runtime_error);
  sync();
  EXPECT_EQ(w.to_vector(), (Floats{1, 2}));
  f(false);
  EXPECT_EQ(w.to_vector(), (Floats{2, 3}));
}

TEST_F(Compile, ServesTheNextRuntimeAnew) {
  auto f = compile([](const Tensor& x) { return x * 2; });
  EXPECT_EQ(f(f32({1}, {1})).item(), 2);
  SimulateRuntime other(Mesh({2}, {"data"}));
  const RuntimeScope scope(other);
  EXPECT_EQ(f(f32({4}, {1})).item(), 8);
  EXPECT_EQ(other.plans.size(), 1U);
}

TEST_F(Compile, RefusesANegativeLimit) {
  expect_error(Errc::invalid_argument, {"max_programs = -1", "compile_test.cpp:"},
               [] { compile([] {}, {.max_programs = -1}); });
}

TEST_F(Compile, AStepScopeIsOneProgramAndOneStep) {
  Parameter w = make_parameter("w", Floats{1}, {1});
  const Tensor before = w * 5;
  {
    const StepScope step;
    w.assign(w + 1);
  }
  EXPECT_EQ(runtime_.programs.size(), 2U);
  EXPECT_EQ(runtime_.steps, 1);
  EXPECT_EQ(before.item(), 5);
  EXPECT_EQ(w.item(), 2);
  EXPECT_THROW(
      {
        const StepScope step;
        throw std::runtime_error("no");
      },
      std::runtime_error);
  EXPECT_EQ(runtime_.steps, 1);
}

TEST_F(Compile, StepClosuresRunInOrderAfterALaterStep) {
  std::vector<std::string> said;
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = f32({static_cast<float>(step)}, {1}) * 2;
    add_step_closure([&, step](double value) { said.push_back(fmt::format("{} {}", step, value)); },
                     loss);
    add_step_closure([&](const Tensor& value) { said.push_back(value.type().to_string()); }, loss);
    sync();
    EXPECT_EQ(said.size(), static_cast<std::size_t>(2 * step));
  }
  scope_.finish();
  EXPECT_EQ(said, (std::vector<std::string>{"0 0", "f32[1]", "1 2", "f32[1]", "2 4", "f32[1]"}));
}

TEST_F(Compile, LabelsToBeIgnoredAreAnotherProgram) {
  const Tensor logits = f32({0, 0, 2, 1}, {2, 2});
  auto loss = compile([&](const Tensor& labels) { return cross_entropy(logits, labels); });
  const double row0 = std::log(2);
  const double row1 = std::log(1 + std::exp(1));
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_NEAR(loss(testing::i32({0, 1}, {2})).item(), (row0 + row1) / 2, 1e-6);
    EXPECT_NEAR(loss(testing::i32({-100, 1}, {2})).item(), row1, 1e-6);
  }
}

TEST_F(Compile, AKeptValueThatItsMarkDoesNotDivideIsGatheredAndWarnedOf) {
  const auto gathers = [&](bool keeps) {
    Parameter w = make_parameter("w", Floats{0}, {1});
    const Tensor x = f32({1, 2, 3, 4, 5}, {5});
    Tensor y = x * 2;
    mark_sharding(y, *runtime_.mesh(), {{"data"}});
    w.assign(w + sum(y));
    if (!keeps) y = Tensor();
    sync();
    return std::ranges::count(runtime_.plans.back()->program.op_kinds, OpKind::all_gather);
  };
  EXPECT_EQ(gathers(false), 0);
  EXPECT_TRUE(runtime_.warnings.empty());
  EXPECT_EQ(gathers(true), 1);
  EXPECT_EQ(runtime_.warnings.size(), 1U);
}

TEST_F(Compile, IndicesInPaddingAreNotChecked) {
  const Mesh& mesh = *runtime_.mesh();
  const Tensor table = f32({0, 1, 2, 3, 4, 5}, {6});
  const Tensor index = testing::i32({1, 2, 3, 4, 5, 6, 2}, {7}) * 1;
  mark_sharding(index, mesh, {{"data", "model"}});
  const Tensor rows = embedding(table, index - 1);  // missing rows have the index -1
  const Tensor sum = weft::sum(rows);
  sync();
  EXPECT_EQ(sum.item(), 16);
}

/// True if add_step_closure() takes a `Value`. It needn't take a number, which is known before the
/// step.
template <typename Value>
concept CanWait = requires(void (*function)(double), Value value) {
  add_step_closure(function, value);
};
static_assert(CanWait<Tensor> && !CanWait<double> && !CanWait<int>);

TEST_F(Compile, AStepClosureInACompiledFunctionIsRefused) {
  auto f = compile([](const Tensor& x) { add_step_closure([](double) {}, x); });
  expect_error(Errc::invalid_argument,
               {"add_step_closure: the function compiled at compile_test.cpp:", "(at compile_test"},
               [&] { f(f32({1}, {1})); });
}

}  // namespace
}  // namespace weft::compile_test
