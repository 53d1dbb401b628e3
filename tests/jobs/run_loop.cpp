#include "tests/jobs/run_loop.hpp"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

Result run_loop(const Loop& loop, int workers, const Config& config,
                const std::function<void(TrainerOptions&)>& change) {
  const TemporaryFolder folder;
  TrainerOptions options{.loop_config = config,
                         .scaling = {.num_workers = workers, .chips_per_worker = 2},
                         .backend = {.timeout_s = 60},
                         .run = {.name = "jobs", .storage_path = folder.path()}};
  if (change) change(options);
  return Trainer(loop, options).fit();
}

const Result& expect_ok(const Result& result) {
  EXPECT_TRUE(result.ok()) << result.error->message;
  return result;
}

}  // namespace weft::testing

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
