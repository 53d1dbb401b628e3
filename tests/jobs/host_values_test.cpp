/// Tests values on the host that must be equal in all workers.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/jobs/run_loop.hpp"

namespace weft::host_values_test {
namespace {

using testing::expect_ok;
using testing::run_loop;

Metrics value_of(const TrainContext& ctx, std::size_t length) {
  return {{"rank", ctx.world_rank()},
          {"text", std::string(length, static_cast<char>('a' + ctx.world_rank()))},
          {"nested", {1, nullptr, {{"x", 0.25}}}}};
}

Loop agrees{"test.agrees", [](TrainContext& ctx, const Config& config) {
              const int root = config["root"];
              Metrics got = Metrics::array();
              for (const std::size_t length : {0U, 1U, 5000U, 300'000U}) {
                got.push_back(broadcast(ctx, value_of(ctx, length), root));
                barrier(ctx);
              }
              got.push_back(broadcast(ctx, nullptr, root));
              return got.size() == 5 && got[2]["text"].get<std::string>().size() == 5000 &&
                             got[4].is_null()
                         ? got[3]
                         : Metrics("wrong");
            }};

TEST(Broadcast, GivesAllWorkersTheValueOfOne) {
  for (const int root : {0, 1, 2}) {
    const Result result = run_loop(agrees, 3, {{"root", root}});
    expect_ok(result);
    ASSERT_EQ(result.returned.size(), 3U);
    for (const Metrics& got : result.returned) {
      EXPECT_EQ(got["rank"], root);
      EXPECT_EQ(got["text"], std::string(300'000, static_cast<char>('a' + root)));
    }
  }
  EXPECT_EQ(expect_ok(run_loop(agrees, 0, {{"root", 0}})).returned[0]["rank"], 0);
}

Loop keeps_nan{"test.keeps_nan", [](TrainContext& ctx) {
                 const double own = ctx.world_rank() == 0 ? std::nan("") : 1.0;
                 return std::isnan(broadcast(ctx, own).get<double>());
               }};

TEST(Broadcast, KeepsANan) {
  EXPECT_EQ(expect_ok(run_loop(keeps_nan, 2)).returned, (std::vector<Metrics>{true, true}));
}

Loop wants{"test.wants_root", [](TrainContext& ctx, const Config& config) {
             const int root = config["roots"][static_cast<std::size_t>(ctx.world_rank())];
             broadcast(ctx, 1, root);
           }};

TEST(Broadcast, RefusesARootThatIsNoWorkerOrDiffers) {
  Result result = run_loop(wants, 2, {{"roots", {2, 2}}});
  ASSERT_TRUE(result.error);
  EXPECT_NE(result.error->message.find("broadcast: root = 2: expected a worker, 0 to 1"),
            std::string::npos)
      << result.error->message;
  result = run_loop(wants, 2, {{"roots", {0, 1}}});
  ASSERT_TRUE(result.error);
  EXPECT_NE(result.error->message.find("in this worker, 0 to 1 in others"), std::string::npos)
      << result.error->message;
}

Loop meets{"test.meets", [](TrainContext& ctx) { barrier(ctx); }};

TEST(Barrier, NeedsAMeshBetweenWorkers) {
  const Result result = run_loop(
      meets, 2, {}, [](TrainerOptions& options) { options.backend.backend = Backend::none; });
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, Errc::unavailable);
  EXPECT_NE(result.error->message.find("barrier: the job has no mesh"), std::string::npos)
      << result.error->message;
}

Loop one_stays_away{"test.one_stays_away", [](TrainContext& ctx) {
                      if (ctx.world_rank() == 0) barrier(ctx);
                    }};

TEST(Barrier, IsNotWaitedInForAWorkerThatHasEnded) {
  const Result result = run_loop(one_stays_away, 2);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, Errc::uneven_loops);
  EXPECT_EQ(result.error->worker, 1);
}

}  // namespace
}  // namespace weft::host_values_test
