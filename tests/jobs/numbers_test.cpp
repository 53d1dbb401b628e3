/// Tests numbers of the host that change from step to step, in jobs of several workers.

#include <gtest/gtest.h>

#include <weft/inspect/metrics.hpp>

#include "tests/jobs/run_loop.hpp"

namespace weft::numbers_test {
namespace {

using testing::expect_ok;
using testing::run_loop;

constexpr int kSteps = 12;

/// Multiplies w by number(rank, step) in each step.
template <typename Number>
void train(TrainContext& ctx, Number number) {
  Parameter w = make_parameter("w", std::vector<float>{1, 2}, {2});
  while (ctx.step() < kSteps) {
    w.assign(w * number(ctx.world_rank(), static_cast<double>(ctx.step())));
    sync();
  }
  ctx.report(
      {{"w", w.to_vector()}, {"compiled", static_cast<double>(counter_value("UncachedCompile"))}});
}

Loop changing{"test.number_changes", [](TrainContext& ctx) {
                train(ctx, [](int, double step) { return 1 / (1.25 + step); });
              }};
Loop scalars{"test.number_is_scalar", [](TrainContext& ctx) {
               train(ctx, [](int, double step) { return scalar(1 / (1.25 + step)); });
             }};
/// Worker 1 has another number in step 7. The number is a constant in step 0 and an input from step
/// 1 on, so step 7 is the seventh run with the input.
Loop differing{"test.number_differs", [](TrainContext& ctx) {
                 train(ctx, [](int rank, double step) {
                   return rank == 1 && step == 7 ? 3.0 : 1 / (1.25 + step);
                 });
               }};

TEST(ChangingNumber, CompilesTwoProgramsAndGivesTheBitsOfAScalar) {
  const Result found = run_loop(changing, 2);
  const Result expected = run_loop(scalars, 2);
  ASSERT_TRUE(expect_ok(found).ok());
  ASSERT_TRUE(expect_ok(expected).ok());
  EXPECT_EQ(found.metrics["w"], expected.metrics["w"]);
  EXPECT_EQ(expected.metrics["compiled"], 1);
  EXPECT_EQ(found.metrics["compiled"], 2);
}

TEST(ChangingNumber, ThatDiffersInAnyRunIsRefused) {
  const Result result = run_loop(differing, 2);
  ASSERT_FALSE(result.ok());
  for (const char* word : {"number.0 f32[] (numbers_test.cpp:", "step 7", "worker 1"}) {
    EXPECT_NE(result.error->message.find(word), std::string::npos)
        << word << " isn't in " << result.error->message;
  }
}

}  // namespace
}  // namespace weft::numbers_test
