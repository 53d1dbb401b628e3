/// Tests a job whose step has a shard_map over chips of several processes; one of them is killed.

#include <gtest/gtest.h>

#include "tests/fault/watched_run.hpp"

namespace weft::shard_map_test {
namespace {

using testing::WatchedRun;
using Words = std::vector<std::string>;

/// Worker 0 has stages 0 and 1 of the pipeline, worker 1 has stages 2 and 3.
TEST(ShardMapRecovery, APipelineThatLosesAStageGoesOnWithTheSameBits) {
  const Words words{PIPELINE, "--workers",      "2", "--chips",  "2", "--topology", "1x4", "--size",
                    "16",     "--heads",        "2", "--length", "8", "--steps",    "120", "--json",
                    "{json}", "--max-failures", "-1"};
  testing::AppProcess calm(words);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  WatchedRun run(words, 2);
  int kills = 0;
  for (const std::uint64_t step : {20U, 60U}) {
    testing::wait_until([&] { return run.over() || run.step() >= step; });
    kills += run.kill(1) ? 1 : 0;
  }
  EXPECT_GT(kills, 0);
  run.expect_result_of(calm.result());
  EXPECT_NE(run.app().output().find("was killed by signal 9"), std::string::npos)
      << run.app().output();
}

}  // namespace
}  // namespace weft::shard_map_test
