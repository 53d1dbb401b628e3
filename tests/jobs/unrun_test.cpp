/// Tests that the log names the line of recorded ops that haven't run when a loop returns.

#include <gtest/gtest.h>

#include "tests/jobs/run_loop.hpp"

namespace weft::unrun_test {
namespace {

using testing::expect_ok;
using testing::run_logged;

Parameter counter() { return make_parameter("count", std::vector<float>{0}, {1}); }

Loop assigns{"test.unrun_assigns", [](TrainContext&) {
               Parameter count = counter();
               for (int i = 0; i < 200; ++i) count.assign(count + 1);
             }};

Loop steps_of_an_optimizer{"test.unrun_optimizer", [](TrainContext&) {
                             Parameter count = counter();
                             SGD optimizer(std::vector{count}, {.lr = 0.1});
                             sum(count * count).item();
                             optimizer.step(grad(sum(count * count), std::vector{count}));
                           }};

Loop ops{"test.unrun_ops", [](TrainContext&) {
           const Parameter count = counter();
           const Tensor doubled = count * 2.0;
         }};

Loop assigns_after_steps{"test.unrun_after_steps", [](TrainContext& ctx) {
                           Parameter count = counter();
                           while (ctx.step() < 3) {
                             count.assign(count + 1);
                             sync();
                           }
                           count.assign(count + 1);
                         }};

Loop all_has_run{"test.all_has_run", [](TrainContext& ctx) {
                   Parameter count = counter();
                   while (ctx.step() < 3) {
                     count.assign(count + 1);
                     add_step_closure([](double) {}, sum(count));
                     sync();
                   }
                   add_step_closure([](double) {}, sum(count));
                   sum(count).item();
                 }};

std::string said_in(const Loop& loop, int workers = 0) {
  const auto [result, log] = run_logged(loop, workers);
  expect_ok(result);
  const auto first = log.find("the loop has returned at step");
  if (first == log.npos) return {};
  const std::string text = log.substr(first, log.find('\n', first) - first);
  EXPECT_EQ(log.find("the loop has returned at step", first + 1), log.npos) << log;
  return text;
}

void expect_said(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' isn't in: " << text;
  }
}

TEST(Unrun, AssignsAreNamedWithTheirLine) {
  expect_said(said_in(assigns), {"at step 0", "'count' f32[1]", "unrun_test.cpp:17", "sync()"});
}

TEST(Unrun, AssignsOfWorkersAreNamedOnce) { expect_said(said_in(assigns, 2), {"'count'"}); }

TEST(Unrun, StepsOfAnOptimizerAreNamedWithTheirLine) {
  expect_said(said_in(steps_of_an_optimizer), {"at step 0", "'count'", "unrun_test.cpp:24"});
}

TEST(Unrun, OpsAreNamedWithTheLineOfTheLast) {
  expect_said(said_in(ops), {"at step 0", "unrun_test.cpp:29"});
}

TEST(Unrun, WorkAfterTheLastStepIsNamed) {
  expect_said(said_in(assigns_after_steps), {"at step 3", "'count'", "unrun_test.cpp:38"});
}

TEST(Unrun, NothingIsSaidWhereAllHasRun) { EXPECT_EQ(said_in(all_has_run), ""); }

}  // namespace
}  // namespace weft::unrun_test
