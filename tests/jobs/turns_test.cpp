/// Tests that a job warns of a loop that repeats an update or a pass without ending a step. The
/// warning comes at the second repetition, and never in correct loops.

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/jobs/run_loop.hpp"

namespace weft::turns_test {
namespace {

using testing::expect_ok;
using testing::run_logged;

constexpr const char* kUpdate = "is updated at turns_test.cpp:";
constexpr const char* kPass = "before its body recorded anything";

Parameter weight() { return make_parameter("w", std::vector<float>{1}, {1}); }

DeviceLoader loader_of(int batches) {
  std::vector<float> x(static_cast<std::size_t>(4 * batches), 0.5F);
  return DeviceLoader(tensors({{"x", std::move(x)}}), {.batch_size = 4});
}

/// Records an update by SGD, but doesn't end the step.
Tensor train(Parameter& w, SGD& optimizer) {
  const Tensor loss = sum(w * w);
  optimizer.step(grad(loss, std::vector{w}));
  return loss;
}

Loop reads_end_no_step{"test.turns_reads", [](TrainContext&) {
                         Parameter w = weight();
                         SGD optimizer(std::vector{w}, {.lr = 0.1});
                         for (int i = 0; i < 30; ++i) train(w, optimizer).item();
                       }};

Loop assigns_end_no_step{"test.turns_assigns", [](TrainContext&) {
                           Parameter w = weight();
                           for (int i = 0; i < 30; ++i) {
                             w.assign(w * 0.5);
                             w.to_vector();
                           }
                         }};

Loop evaluations_end_no_step{"test.turns_all", [](TrainContext&) {
                               Parameter w = weight();
                               SGD optimizer(std::vector{w}, {.lr = 0.1});
                               DeviceLoader loader = loader_of(4);
                               for (const Batch& batch : loader.all()) {
                                 const Tensor loss = sum(w * batch["x"]);
                                 optimizer.step(grad(loss, std::vector{w}));
                                 loss.item();
                               }
                             }};

/// Leaves `turns` passes over the data early, all in step 2. If `odd` isn't negative, only worker
/// `odd` does so.
void leave_passes(TrainContext& ctx, int turns, int odd = -1) {
  Parameter w = weight();
  DeviceLoader loader = loader_of(3);
  while (turns > 0 && ctx.step() < 4) {
    for (const Batch& batch : loader) {
      if (ctx.step() == 2 && (odd < 0 || ctx.world_rank() == odd)) {
        --turns;
        break;
      }
      w.assign(w + sum(batch["x"]));
    }
  }
}

Loop leaves_passes{"test.turns_passes", [](TrainContext& ctx) { leave_passes(ctx, 5); }};

Loop one_leaves_passes{"test.turns_of_one", [](TrainContext& ctx) {
                         leave_passes(ctx, 5, 1);
                         if (ctx.world_rank() == 1) throw std::runtime_error("it has turned");
                       }};

Loop leaves_passes_for_ever{"test.turns_for_ever",
                            [](TrainContext& ctx) { leave_passes(ctx, 1 << 30); }};

Loop is_right{"test.turns_right", [](TrainContext& ctx) {
                Parameter w = weight();
                SGD optimizer(std::vector{w}, {.lr = 0.1});
                DeviceLoader loader = loader_of(3);
                for (const Batch& batch : loader) {
                  (void)batch;  // this pass reads only the first batch
                  break;
                }
                while (ctx.step() < 3) {  // this loop ends its steps with sync()
                  train(w, optimizer).item();
                  sync();
                }
                // Repetitions that only read values are correct.
                for (int turn = 0; turn < 5; ++turn) sum(w * w).item();
                for (int turn = 0; turn < 5; ++turn) {  // repeated evaluations are correct
                  for (const Batch& batch : loader.all()) sum(w * batch["x"]).item();
                }
                int polls = 0;
                while (++polls < 1000) (void)ctx.step();
                for (const Batch& batch : loader) {  // several updates in a body are correct
                  for (int part = 0; part < 3; ++part) {
                    const Tensor loss = sum(w * batch["x"]);
                    optimizer.step(grad(loss, std::vector{w}));
                    loss.item();
                  }
                  for (const Batch& other : loader.all()) {
                    (void)other;
                    break;
                  }
                }
                // These passes end after the host has read the first batch.
                for (int turn = 0; turn < 3; ++turn) {
                  for (const Batch& batch : loader) {
                    batch["x"].to_vector();
                    break;
                  }
                }
              }};

Loop counts_on_the_host{"test.turns_host", [](TrainContext&) {
                          DeviceLoader loader = loader_of(3);
                          float total = 0;
                          for (int turn = 0; turn < 3; ++turn) {
                            for (const Batch& batch : loader) total += batch["x"].to_vector()[0];
                          }
                        }};

int count(const std::string& log, const std::string& words) {
  int found = 0;
  for (std::size_t at = log.find(words); at != log.npos; at = log.find(words, at + 1)) ++found;
  return found;
}

void expect_named_once(const std::string& log, const char* what,
                       std::initializer_list<const char*> words) {
  EXPECT_EQ(count(log, what), 1) << log;
  for (const char* word : words) EXPECT_NE(log.find(word), log.npos) << word << " isn't in " << log;
}

void expect_silent(const Loop& loop, int workers) {
  const auto [result, log] = run_logged(loop, workers);
  expect_ok(result);
  EXPECT_EQ(count(log, kUpdate), 0) << log;
  EXPECT_EQ(count(log, kPass), 0) << log;
}

TEST(Turns, AnUpdateThatReadsRunIsNamedAtItsSecondTurn) {
  for (const int workers : {0, 2}) {
    const auto [result, log] = run_logged(reads_end_no_step, workers);
    expect_ok(result);
    expect_named_once(log, kUpdate,
                      {"'w'", "for the second time in step 0", "sync()", "weft::compile()"});
  }
}

TEST(Turns, AnAssignThatReadsRunIsNamed) {
  expect_named_once(run_logged(assigns_end_no_step, 0).log, kUpdate, {"'w'"});
}

TEST(Turns, TrainingOnAllBatchesOfAnEvaluationIsNamed) {
  expect_named_once(run_logged(evaluations_end_no_step, 0).log, kUpdate, {"'w'"});
}

TEST(Turns, APassThatIsLeftAndBegunAgainIsNamed) {
  const auto [result, log] = run_logged(leaves_passes, 0);
  expect_ok(result);
  expect_named_once(log, kPass, {"turns_test.cpp:", "left 2 times in step 2", "sync()"});
}

TEST(Turns, TheWorkerThatAloneLeavesPassesSaysSo) {
  const auto [result, log] = run_logged(one_leaves_passes, 2);
  EXPECT_FALSE(result.ok());
  expect_named_once(log, kPass, {"left 2 times in step 2"});
}

TEST(Turns, PassesThatAreLeftForEverEndWithTheirCause) {
  const auto [result, log] = run_logged(leaves_passes_for_ever, 0);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error->message.find(kPass), std::string::npos) << result.error->message;
  EXPECT_NE(result.error->message.find("left 10000 times"), std::string::npos);
}

TEST(Turns, NothingIsSaidOfALoopThatIsRight) {
  expect_silent(is_right, 0);
  expect_silent(is_right, 2);
}

TEST(Turns, NothingIsSaidOfALoopOnTheHost) { expect_silent(counts_on_the_host, 0); }

}  // namespace
}  // namespace weft::turns_test
