/// Tests the callbacks of a job, and the values that the job's loops return.

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/ranges.h>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::callbacks_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using testing::TemporaryFolder;

Loop reports{"test.reports", [](TrainContext& ctx) {
               for (int i = 0; i < 3; ++i) ctx.report({{"i", i}});
               if (ctx.world_rank() == 1) fail(Errc::invalid_argument, "worker 1 is done with it");
               while (ctx.world_size() > 1) full({1}, 1).item();
             }};

class Notes : public Callback {
 public:
  void on_start(const JobInfo& job) override { lines.push_back("start " + job.name); }
  void on_step(std::uint64_t step) override { steps.push_back(step); }
  void on_report(const Metrics& metrics) override { lines.push_back(metrics.dump()); }
  void on_failure(const Failure& failure) override {
    failures.push_back(failure);
    lines.push_back(fmt::format("failure of worker {}", failure.worker));
  }
  void on_recovered(std::uint64_t step) override {
    recovered.push_back(step);
    lines.push_back("recovered");
  }
  void on_end(const Result& result) override {
    lines.push_back(fmt::format("end {} {}", result.metrics.dump(),
                                result.error ? result.error->message : "well"));
    folder_was_there = std::filesystem::exists(result.path + "/result.json");
  }
  std::vector<std::string> lines;
  std::vector<std::uint64_t> steps;
  std::vector<Failure> failures;
  std::vector<std::uint64_t> recovered;
  bool folder_was_there = false;
};

TEST(Callbacks, HearTheEndOnceAndLast) {
  const auto notes = std::make_shared<Notes>();
  expect_ok(
      run_loop(reports, 1, {}, [&](TrainerOptions& options) { options.run.callbacks = {notes}; }));
  EXPECT_EQ(notes->lines, (std::vector<std::string>{"start jobs", "{\"i\":0}", "{\"i\":1}",
                                                    "{\"i\":2}", "end {\"i\":2} well"}));
  EXPECT_TRUE(notes->failures.empty());
  EXPECT_TRUE(notes->folder_was_there);
}

TEST(Callbacks, HearOfAFailureThatEndsTheJob) {
  const auto notes = std::make_shared<Notes>();
  const Result result =
      run_loop(reports, 2, {}, [&](TrainerOptions& options) { options.run.callbacks = {notes}; });
  ASSERT_TRUE(result.error);
  EXPECT_NE(notes->lines.back().find("worker 1 is done with it"), std::string::npos)
      << notes->lines.back();
  ASSERT_EQ(notes->failures.size(), 1U);
  EXPECT_EQ(notes->failures[0].worker, 1);
  EXPECT_EQ(notes->failures[0].message, result.error->message);
  EXPECT_TRUE(notes->recovered.empty());
}

constexpr int kSteps = 12;

/// Worker 1 kills itself once, when half of the steps are done.
Loop loses_one{
    "test.loses_one", [](TrainContext& ctx) {
      Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
      while (ctx.step() < kSteps) {
        const std::string killed = ctx.run_dir() + "/killed";
        if (ctx.world_rank() == 1 && ctx.step() == kSteps / 2 && !std::filesystem::exists(killed)) {
          std::ofstream(killed) << "once";
          std::raise(SIGKILL);
        }
        sum.assign(sum + 1.0);
        sync();
        ctx.report({{"i", ctx.step()}});
      }
    }};

TEST(Callbacks, HearOfALossOnceAndThatTheJobGoesOn) {
  const auto notes = std::make_shared<Notes>();
  const Result result = run_loop(loses_one, 2, {}, [&](TrainerOptions& options) {
    options.run.callbacks = {notes};
    options.run.failure.max_failures = 1;
  });
  expect_ok(result);
  ASSERT_EQ(notes->failures.size(), 1U);
  EXPECT_EQ(notes->failures[0].worker, 1);
  EXPECT_EQ(notes->failures[0].signal, SIGKILL);
  ASSERT_FALSE(notes->steps.empty());
  EXPECT_EQ(notes->steps.back(), kSteps);
  EXPECT_EQ(std::ranges::adjacent_find(notes->steps, std::greater_equal()), notes->steps.end())
      << fmt::format("{}", fmt::join(notes->steps, " "));
  ASSERT_EQ(notes->recovered.size(), 1U);
  EXPECT_LE(notes->recovered[0], static_cast<std::uint64_t>(kSteps / 2));
  const auto at = [&](const std::string& line) {
    return std::ranges::find(notes->lines, line) - notes->lines.begin();
  };
  EXPECT_LT(at("failure of worker 1"), at("recovered"));
  EXPECT_LT(at("recovered"), std::ssize(notes->lines) - 1);
}

TEST(Callbacks, HearEachReportOfEachWorkerOnce) {
  std::map<int, std::vector<int>> told;  // keyed by worker
  const Result result = run_loop(loses_one, 2, {}, [&](TrainerOptions& options) {
    options.run.failure.max_failures = 1;
    options.run.on_worker_report = [&](int worker, const Metrics& metrics) {
      told[worker].push_back(metrics.at("i"));
    };
  });
  expect_ok(result);
  ASSERT_EQ(told.size(), 2U);
  std::vector<int> all(kSteps);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(told[0], all);
  EXPECT_TRUE(std::ranges::is_sorted(told[1]));
  EXPECT_EQ(std::ranges::adjacent_find(told[1]), told[1].end());
  EXPECT_EQ(told[1].back(), kSteps);
}

Loop never_ends{"test.never_ends", [](TrainContext& ctx) {
                  Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                  for (;;) {
                    sum.assign(sum + 1.0);
                    sync();
                    ctx.report({{"i", ctx.step()}});
                  }
                }};

TEST(Callbacks, AReportOfAnotherWorkerMayEndTheJobByAnException) {
  const auto fit = [] {
    run_loop(never_ends, 2, {}, [](TrainerOptions& options) {
      options.run.on_worker_report = [](int worker, const Metrics&) {
        if (worker == 1) throw std::runtime_error("enough of it");
      };
    });
  };
  EXPECT_THROW(fit(), std::runtime_error);
}

Loop learns_nothing{"test.learns_nothing", [](TrainContext& ctx) {
                      Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                      for (;;) {
                        sum.assign(sum + 1.0);
                        sync();
                        const double nan = std::numeric_limits<double>::quiet_NaN();
                        ctx.report({{"loss", ctx.step() < 3 ? 0.5 : nan}});
                      }
                    }};

TEST(Nan, EndsAJobThatWantsSo) {
  const auto notes = std::make_shared<Notes>();
  const Result result = run_loop(learns_nothing, 2, {}, [&](TrainerOptions& options) {
    options.run.failure.ends_on_nan = true;
    options.run.failure.max_failures = -1;
  });
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, Errc::loop_failed);
  EXPECT_NE(result.error->message.find("worker 0 reports loss = nan at step 3"), std::string::npos)
      << result.error->message;
  EXPECT_TRUE(result.failures.empty());
}

/// Saves in every second step. Worker 1 kills itself once, in step 5.
Loop saves{"test.saves_each_second", [](TrainContext& ctx) {
             Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
             CheckpointManager manager;
             while (ctx.step() < 6) {
               const std::string killed = ctx.run_dir() + "/killed";
               if (ctx.world_rank() == 1 && ctx.step() == 5 && !std::filesystem::exists(killed)) {
                 std::ofstream(killed) << "once";
                 std::raise(SIGKILL);
               }
               sum.assign(sum + 1.0);
               sync();
               manager.save(std::vector<Parameter>{sum});
             }
           }};

TEST(Callbacks, HearOfEachCheckpointOnceAndWhenItCanBeRestored) {
  struct Saved : Callback {
    void on_checkpoint(const Checkpoint& checkpoint, std::uint64_t step) override {
      steps.push_back(step);
      EXPECT_EQ(checkpoint_info(checkpoint.path).step, step);
    }
    std::vector<std::uint64_t> steps;
  };
  const auto saved = std::make_shared<Saved>();
  expect_ok(run_loop(saves, 2, {}, [&](TrainerOptions& options) {
    options.run.callbacks = {saved};
    options.run.failure.max_failures = 1;
    options.run.checkpoint.save_interval = 2;
  }));
  EXPECT_EQ(saved->steps, (std::vector<std::uint64_t>{2, 4, 6}));
}

/// In step 3, worker 1 waits until the run's folder has a file "go".
Loop hangs_in_its_code{"test.hangs_in_its_code", [](TrainContext& ctx) {
                         Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                         while (ctx.step() < 5) {
                           while (ctx.world_rank() == 1 && ctx.step() == 3 &&
                                  !std::filesystem::exists(ctx.run_dir() + "/go")) {
                             ::sched_yield();
                           }
                           sum.assign(sum + 1.0);
                           sync();
                         }
                       }};

TEST(Callbacks, HearOfAHangAndTheJobMayGoOn) {
  struct Hung : Callback {
    void on_start(const JobInfo& job) override { folder = job.path; }
    void on_hang(const HangReport& hang) override {
      hangs.push_back(hang);
      EXPECT_TRUE(std::filesystem::exists(hang.path)) << hang.path;
      std::ofstream(folder + "/go") << "go";
    }
    std::string folder;
    std::vector<HangReport> hangs;
  };
  const auto hung = std::make_shared<Hung>();
  expect_ok(run_loop(hangs_in_its_code, 2, {}, [&](TrainerOptions& options) {
    options.run.callbacks = {hung};
    options.run.failure.hang_warning_s = 2;
  }));
  ASSERT_EQ(hung->hangs.size(), 1U);
  EXPECT_GE(hung->hangs[0].seconds, 2);
  EXPECT_GE(hung->hangs[0].step, 3U);
  EXPECT_NE(hung->hangs[0].why.find("worker 1"), std::string::npos) << hung->hangs[0].why;
}

// The following tests cover values that loops return.

struct Score {
  int rank = 0;
  double accuracy = 0;
};
void to_json(Metrics& json, const Score& score) {
  json = {{"rank", score.rank}, {"accuracy", score.accuracy}};
}

Loop scores{"test.scores",
            [](TrainContext& ctx) { return Score{.rank = ctx.world_rank(), .accuracy = 0.5}; }};
Loop counts{"test.counts", [](TrainContext& ctx, const Config& config) {
              return config["first"].get<int>() + ctx.world_rank();
            }};
Loop returns_nothing{"test.returns_nothing", [](TrainContext&) {}};
Loop returns_too_much{"test.returns_too_much",
                      [](TrainContext&) { return std::string(2'000'000, 'x'); }};
Loop one_of_two_fails{"test.one_of_two_fails", [](TrainContext& ctx) {
                        if (ctx.world_rank() == 1) fail(Errc::invalid_argument, "not today");
                        return 1;
                      }};

TEST(Returned, IsWhatEachLoopReturns) {
  EXPECT_EQ(run_loop(scores, 2).returned, (std::vector<Metrics>{{{"rank", 0}, {"accuracy", 0.5}},
                                                                {{"rank", 1}, {"accuracy", 0.5}}}));
  EXPECT_EQ(run_loop(counts, 3, {{"first", 10}}).returned, (std::vector<Metrics>{10, 11, 12}));
  EXPECT_EQ(run_loop(returns_nothing, 2).returned, (std::vector<Metrics>{nullptr, nullptr}));
}

TEST(Returned, IsThatOfALoopInThisProcessToo) {
  EXPECT_EQ(run_loop(counts, 0, {{"first", 10}}).returned, (std::vector<Metrics>{10}));
  const TemporaryFolder folder;
  const auto score = [](TrainContext&) { return std::vector<int>{1, 2}; };
  const Result result =
      Trainer(score, {.scaling = {.num_workers = 0}, .run = {.storage_path = folder.path()}}).fit();
  EXPECT_EQ(expect_ok(result).returned, (std::vector<Metrics>{{1, 2}}));
}

TEST(Returned, IsInTheRunFolder) {
  const TemporaryFolder folder;
  const Result result = run_loop(
      scores, 2, {}, [&](TrainerOptions& options) { options.run.storage_path = folder.path(); });
  EXPECT_EQ(Result::load(expect_ok(result).path).returned, result.returned);
}

TEST(Returned, IsNothingOfAJobThatFails) {
  const Result result = run_loop(one_of_two_fails, 2);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.returned, (std::vector<Metrics>{nullptr, nullptr}));
}

TEST(Returned, IsRefusedWhereItIsTooMuch) {
  const Result result = run_loop(returns_too_much, 1);
  ASSERT_TRUE(result.error);
  EXPECT_NE(result.error->message.find("the loop has returned 2000005 bytes as CBOR"),
            std::string::npos)
      << result.error->message;
}

}  // namespace
}  // namespace weft::callbacks_test
