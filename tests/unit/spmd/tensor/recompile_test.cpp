/// Tests the messages about programs that are recompiled by mistake. Each message names the cause
/// and the line.

#include <gtest/gtest.h>

#include <weft/nn/module.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/tensor/compile.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::recompile_test {
namespace {

using testing::expect_error;
using testing::SimulateRuntime;
using Floats = std::vector<float>;

int line(std::source_location loc = std::source_location::current()) {
  return static_cast<int>(loc.line());
}

class Recompile : public ::testing::Test {
 protected:
  /// Returns the only message, with "L" in place of "recompile_test.cpp:".
  std::string message() const {
    EXPECT_EQ(runtime_.recompiles.size(), 1U) << ::testing::PrintToString(runtime_.recompiles);
    std::string text = runtime_.recompiles.empty() ? "" : runtime_.recompiles.front();
    constexpr std::string_view kFile = "recompile_test.cpp:";
    for (std::size_t at = 0; (at = text.find(kFile)) != std::string::npos;) {
      text.replace(at, kFile.size(), "L");
    }
    return text;
  }

  static Tensor data(std::int64_t rows, std::int64_t columns,
                     std::source_location loc = std::source_location::current()) {
    return to_device(Floats(static_cast<std::size_t>(rows * columns), 0.5F), {rows, columns}, loc);
  }

  SimulateRuntime runtime_{Mesh({2}, {"data"})};
  RuntimeScope scope_{runtime_};
  Parameter w_ = make_parameter("w", Floats{1, 2}, {2, 1});
};

TEST_F(Recompile, LastBatch) {
  int made = 0;
  int synced = 0;
  for (const std::int64_t rows : {32, 32, 32, 14}) {
    made = line() + 1;
    const Tensor x = data(rows, 2);
    w_.assign(w_ - 0.1 * grad(sum(matmul(x, w_)), std::vector{w_})[0]);
    synced = line() + 1;
    sync();
  }
  EXPECT_EQ(
      message(),
      fmt::format("recompile #1 for the sync at L{}: input 'data.0' f32[32,2] -> f32[14,2] at L{}: "
                  "if this is a smaller last batch, drop it (drop_last) or pad it (pad_last)",
                  synced, made));
}

TEST_F(Recompile, ALearningRateThatChangesIsAnInputFromTheSecondProgramOn) {
  int updated = 0;
  int synced = 0;
  for (int step = 0; step < 20; ++step) {
    const double lr = 0.5 / (1 + step);
    const Tensor g = grad(sum(matmul(data(4, 2), w_)), std::vector{w_})[0];
    updated = line() + 1;
    w_.assign(w_ - g * lr);
    synced = line() + 1;
    sync();
  }
  EXPECT_EQ(runtime_.plans.size(), 2U);
  EXPECT_EQ(message(),
            fmt::format("recompile #1 for the sync at L{}: constant 0.5 -> 0.25 at L{}: passed as "
                        "an input from now on; use weft::scalar(v) for an input from the start",
                        synced, updated));
}

/// Expects that a step gives the same results with a changing number as with a scalar tensor, and
/// that both together compile `programs` programs.
template <typename Step>
void expect_as_with_scalars(SimulateRuntime& runtime, std::size_t programs, Step step) {
  for (int i = 0; i < 12; ++i) {
    const double number = 1.5 / (1 + i);
    const Floats found = step(number).template to_vector<float>();
    EXPECT_EQ(found, step(scalar(number)).template to_vector<float>()) << i;
  }
  EXPECT_EQ(runtime.plans.size(), programs);
}

TEST_F(Recompile, NumbersThatChangeInLoopsBranchesAndBeforeReads) {
  const auto read = [&](const auto& number) { return w_ * number + 1; };
  expect_as_with_scalars(runtime_, 3, read);  // one for the scalar, two for the number
  const auto loop = [&](const auto& number) {
    const Tensor steps = iota({3}, 0, DType::f32);
    const auto body = [&](const Tensor& x, const Tensor& i) {
      return std::pair(x * number + i, x);
    };
    return scan(body, w_, steps).carry;
  };
  runtime_.plans.clear();
  expect_as_with_scalars(runtime_, 3, loop);
  const auto branch = [&](const auto& number) {
    return cond(
        sum(w_) > 0, [&] { return w_ * number; }, [&] { return w_ - number; });
  };
  runtime_.plans.clear();
  expect_as_with_scalars(runtime_, 3, branch);
}

TEST_F(Recompile, ANumberThatChangesLaterIsAnInputToo) {
  for (int step = 0; step < 10; ++step) {
    const double first = 0.5 + step;
    const double second = step < 5 ? 3 : step;
    w_.assign(w_ * first + second);
    sync();
  }
  EXPECT_EQ(runtime_.plans.size(), 3U);
  ASSERT_EQ(runtime_.recompiles.size(), 2U);
  EXPECT_NE(runtime_.recompiles[1].find("recompile #2"), std::string::npos);
  EXPECT_NE(runtime_.recompiles[1].find("constant 3 -> 5 at"), std::string::npos)
      << runtime_.recompiles[1];
}

TEST_F(Recompile, TrainingEvaluationAndALastBatchHaveInputsForNumbersEach) {
  const auto run = [&](bool train, std::int64_t rows, double number) {
    const Tensor loss = sum(matmul(data(rows, 2), w_) * number);
    if (train) w_.assign(w_ - grad(loss, std::vector{w_})[0]);
    sync();
  };
  for (int step = 0; step < 8; ++step) {
    run(true, step % 4 == 3 ? 2 : 4, step + 1);
    run(false, 6, step + 1);
  }
  EXPECT_EQ(runtime_.plans.size(), 6U);
}

/// A number that a product reads can't become an input, so each new value of the number compiles a
/// new program.
TEST_F(Recompile, ANumberOfAProductIsAConstant) {
  int made = 0;
  int synced = 0;
  for (const double number : {0.5, 0.25}) {
    made = line() + 1;
    const Tensor ones = full({2, 2}, number);
    const Tensor y = matmul(ones, w_);
    synced = line() + 1;
    sync();
  }
  EXPECT_EQ(message(), fmt::format("recompile #1 for the sync at L{}: constant 0.5 -> 0.25 at L{}: "
                                   "pass changing numbers as weft::scalar(v)",
                                   synced, made));
}

TEST_F(Recompile, KeptHandle) {
  Tensor kept;
  int made = 0;
  int synced = 0;
  for (const bool keeps : {false, true}) {
    const Tensor loss = sum(matmul(data(4, 2), w_));
    {
      made = line() + 1;
      const Tensor logits = matmul(data(4, 2), w_) + 1;
      if (keeps) kept = logits;
    }
    synced = line() + 1;
    sync();
  }
  EXPECT_EQ(message(),
            fmt::format("recompile #1 for the sync at L{}: output add f32[4,1] at L{} is "
                        "new: its handle was kept alive; let it end before the sync()",
                        synced, made));
}

TEST_F(Recompile, HostBranch) {
  int first = 0;
  int second = 0;
  int synced = 0;
  for (int step = 0; step < 2; ++step) {
    const Tensor x = data(4, 2);
    Tensor y;
    if (step == 0) {
      first = line() + 1;
      y = exp(x);
    } else {
      second = line() + 1;
      y = tanh(x);
    }
    synced = line() + 1;
    sync();
  }
  EXPECT_EQ(message(), fmt::format("recompile #1 for the sync at L{}: exponential f32[4,2] at L{} "
                                   "-> tanh f32[4,2] at L{}: if a branch on the host causes this, "
                                   "compute both sides and choose with where(), or use cond()",
                                   synced, first, second));
}

TEST_F(Recompile, GrowingSequence) {
  int made = 0;
  int synced = 0;
  for (const std::int64_t length : {4, 6, 8}) {
    made = line() + 1;
    const Tensor tokens = data(2, length);
    const Tensor y = tokens * 2;
    synced = line() + 1;
    sync();
  }
  ASSERT_EQ(runtime_.recompiles.size(), 2U);
  runtime_.recompiles.erase(runtime_.recompiles.begin());
  EXPECT_EQ(message(),
            fmt::format("recompile #2 for the sync at L{}: input 'data.0' f32[2,6] -> f32[2,8] at "
                        "L{}: if this size grows, pad it to a fixed size and use a mask",
                        synced, made));
}

TEST_F(Recompile, AreSaidAFewTimesHoweverManyThereAre) {
  for (int step = 0; step < 102; ++step) {
    const Tensor y = matmul(data(1 + step, 2), w_);
    sync();
  }
  ASSERT_EQ(runtime_.recompiles.size(), 5U);
  EXPECT_NE(runtime_.recompiles[2].find("the next reported recompile of this line is #10"),
            std::string::npos)
      << runtime_.recompiles[2];
  EXPECT_TRUE(runtime_.recompiles[4].starts_with("recompile #100 for the sync at "))
      << runtime_.recompiles[4];
}

TEST_F(Recompile, NothingIsSaidOfTheStepAfterTheFirst) {
  for (int step = 0; step < 3; ++step) {
    w_.assign(w_ - 0.1 * grad(sum(matmul(data(4, 2), w_)), std::vector{w_})[0]);
    sync();
  }
  EXPECT_EQ(runtime_.plans.size(), 1U);
  EXPECT_TRUE(runtime_.recompiles.empty());
}

TEST_F(Recompile, ComparesWithTheNearestProgramOfTheLine) {
  // Training and evaluation alternate; then an evaluation with more rows follows.
  const auto run = [&](bool train, std::int64_t rows) {
    const Tensor y = matmul(data(rows, 2), w_);
    Tensor loss;
    if (train) {
      loss = sum(y * y);
      w_.assign(w_ - 0.1 * grad(loss, std::vector{w_})[0]);
    }
    sync();
  };
  run(true, 4);
  run(false, 6);
  runtime_.recompiles.clear();
  run(false, 8);
  EXPECT_NE(message().find("input 'data.0' f32[6,2] -> f32[8,2]"), std::string::npos) << message();
}

TEST_F(Recompile, AFunctionMayHaveOnlySoManyPrograms) {
  auto twice = compile([](const Tensor& x) { return x * 2; }, {.max_programs = 2});
  EXPECT_EQ(twice(data(1, 2)).shape(), (Shape{1, 2}));
  EXPECT_EQ(twice(data(2, 2)).shape(), (Shape{2, 2}));
  expect_error(Errc::invalid_argument,
               {"compile at recompile_test.cpp:", "max_programs = 2",
                "input 'data.0' f32[2,2] -> f32[3,2] at recompile_test.cpp:"},
               [&] { twice(data(3, 2)); });
  EXPECT_EQ(twice(data(2, 2)).shape(), (Shape{2, 2}));
}

}  // namespace
}  // namespace weft::recompile_test
