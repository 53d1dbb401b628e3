#include "tests/jobs/run_loop.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>

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

LoggedRun run_logged(const Loop& loop, int workers) {
  struct ReadLog : Callback {
    void on_end(const Result& result) override {
      std::vector<std::string> names{"trainer.log"};
      for (int worker = 0; worker < 8; ++worker)
        names.push_back(fmt::format("worker-{}.log", worker));
      for (const std::string& name : names) {
        std::ifstream file(result.path + "/" + name);
        log.append(std::istreambuf_iterator<char>(file), {});
      }
    }
    std::string log;
  };
  const auto reads = std::make_shared<ReadLog>();
  Result result = run_loop(loop, workers, Config::object(), [&](TrainerOptions& options) {
    options.run.callbacks.push_back(reads);
  });
  return {std::move(result), reads->log};
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
