/// Tests jobs of named loops: several at once, in the background, or told to end.

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>
#include <stop_token>
#include <thread>

#include "tests/embed/loops.hpp"
#include "tests/support/app_process.hpp"

namespace weft::jobs_test {
namespace {

using testing::options;

/// Returns what is wrong with the result of an add loop; "" if nothing is.
std::string fault_of(const Result& result, int amount, int tag, int steps = 20) {
  if (!result.ok()) return result.error->message;
  if (result.metrics["tag"] != tag || result.metrics["sum"] != 1 + amount * steps) {
    return result.metrics.dump();
  }
  return "";
}

int rounds() {
  const char* given = std::getenv("WEFT_EMBED_ROUNDS");
  return given != nullptr ? std::atoi(given) : 10;
}

TEST(Jobs, ThreeAtOnceFromThreadsEachGetTheirOwnLoop) {
  for (int round = 0; round < rounds(); ++round) {
    const auto run = [&](const Loop& loop, int amount, int tag, int workers) {
      return std::async(std::launch::async, [&loop, amount, tag, workers] {
        return fault_of(Trainer{loop, options({{"tag", tag}}, workers)}.fit(), amount, tag);
      });
    };
    auto first = run(testing::add_one, 1, round, 2);
    auto second = run(testing::add_hundred, 100, -round, 2);
    auto third = run(testing::add_one, 1, 1000 + round, round % 2 == 0 ? 0 : 1);
    EXPECT_EQ(first.get(), "");
    EXPECT_EQ(second.get(), "");
    EXPECT_EQ(third.get(), "");
  }
}

TEST(Jobs, RunInTheBackground) {
  for (const int workers : {0, 2}) {
    Job job = Trainer{testing::add_one, options({{"tag", 7}}, workers)}.start();
    EXPECT_FALSE(job.info().id.empty());
    EXPECT_EQ(job.info().num_workers, workers);
    EXPECT_EQ(fault_of(job.result(), 1, 7), "");
    EXPECT_EQ(job.phase(), Job::Phase::ended);
    EXPECT_EQ(job.latest()["sum"], 21);
    pollfd ended{.fd = job.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ended, 1, 0), 1);
    testing::expect_nothing_left(job.info().id);
  }
}

TEST(Jobs, OutliveTheThreadThatStartedThem) {
  std::optional<Job> job;
  std::jthread([&] {
    job = Trainer{testing::add_one, options({{"tag", 1}, {"steps", 500}})}.start();
  }).join();
  EXPECT_EQ(fault_of(job->result(), 1, 1, 500), "");
}

TEST(Jobs, ALoopThatAsksEndsWhereItIsStopped) {
  for (const int workers : {0, 2}) {
    Job job = Trainer{testing::until_asked, options({}, workers)}.start();
    testing::wait_until([&] { return !job.latest().is_null(); });
    EXPECT_EQ(job.phase(), Job::Phase::running);
    job.stop();
    const Result result = job.result();
    EXPECT_TRUE(result.cancelled());
    EXPECT_EQ(result.ended_by, EndedBy::stop);
    EXPECT_EQ(result.metrics["asked"], true);
  }
}

TEST(Jobs, AreCancelledAtOnce) {
  for (const int workers : {0, 2}) {
    Job job = Trainer{testing::never_asks, options({}, workers)}.start();
    testing::wait_until([&] { return !job.latest().is_null(); });
    job.cancel();
    const Result result = job.result();
    EXPECT_TRUE(result.cancelled());
    EXPECT_EQ(result.ended_by, EndedBy::cancel);
    testing::expect_nothing_left(job.info().id);
  }
}

TEST(Jobs, AreCancelledByTheDestructor) {
  std::string id;
  {
    const Job job = Trainer{testing::never_asks, options({})}.start();
    id = job.info().id;
  }
  testing::expect_nothing_left(id);
}

TEST(Jobs, AStopTokenStopsAFit) {
  std::stop_source source;
  TrainerOptions with_callback = options({});
  struct StopAtReport : Callback {
    explicit StopAtReport(std::stop_source s) : source(std::move(s)) {}
    void on_report(const Metrics&) override { source.request_stop(); }
    std::stop_source source;
  };
  with_callback.run.callbacks = {std::make_shared<StopAtReport>(source)};
  const Result result = Trainer{testing::until_asked, with_callback}.fit(source.get_token());
  EXPECT_TRUE(result.cancelled());
  EXPECT_EQ(result.ended_by, EndedBy::stop);
  EXPECT_NE(result.error->message.find("jobs_test.cpp"), std::string::npos)
      << result.error->message;
}

TEST(Jobs, AStopThatCameBeforeStartsNothing) {
  std::stop_source source;
  source.request_stop();
  for (const int workers : {0, 2}) {
    const Result result =
        Trainer(testing::until_asked, options({}, workers)).fit(source.get_token());
    EXPECT_TRUE(result.cancelled());
    EXPECT_EQ(result.ended_by, EndedBy::stop);
    EXPECT_FALSE(std::filesystem::exists(result.path + "/worker-0.log"));
  }
}

/// A loop that reports at each step until the job is told to end.
Loop reports{"test.reports_until_asked", [](TrainContext& ctx) {
               while (!ctx.reached_preemption()) {
                 sync();
                 ctx.report({});
               }
             }};

TEST(Jobs, ACallbackMayStopItsJobAndNotWaitForIt) {
  struct Ends : Callback {
    void on_report(const Metrics&) override {
      Job* known = job;
      if (known == nullptr) return;
      try {
        known->wait();
      } catch (const Error& e) {
        refusal = e.what();
      }
      known->stop();
    }
    std::atomic<Job*> job{nullptr};
    std::string refusal;
  };
  const auto ends = std::make_shared<Ends>();
  TrainerOptions with_callback = options({});
  with_callback.run.callbacks = {ends};
  with_callback.scaling.num_workers = 0;
  Job job = Trainer{reports, with_callback}.start();
  ends->job = &job;
  EXPECT_TRUE(job.result().cancelled());
  EXPECT_NE(ends->refusal.find("wait()"), std::string::npos) << ends->refusal;
}

TEST(Jobs, WhatACallbackThrowsComesOutOfResult) {
  struct Throws : Callback {
    void on_start(const JobInfo&) override { throw std::runtime_error("boom"); }
  };
  TrainerOptions with_callback = options({{"tag", 1}});
  with_callback.run.callbacks = {std::make_shared<Throws>()};
  Job job = Trainer{testing::add_one, with_callback}.start();
  EXPECT_THROW(job.result(), std::runtime_error);
}

TEST(Jobs, TheLastReportOfEachWorkerIsInTheResult) {
  const Result result = Trainer{testing::add_one, options({{"tag", 1}}, 3)}.fit();
  ASSERT_TRUE(result.ok()) << result.error->message;
  ASSERT_EQ(result.worker_metrics.size(), 3U);
  for (int worker = 0; worker < 3; ++worker) {
    EXPECT_EQ(result.worker_metrics[static_cast<std::size_t>(worker)]["rank"], worker);
  }
}

TEST(Jobs, SixtyFourAtOnceAndNoMore) {
  std::vector<Job> jobs;
  for (int i = 0; i < 64; ++i) {
    jobs.push_back(Trainer{testing::until_asked, options({}, 0)}.start());
  }
  EXPECT_THROW(Trainer(testing::until_asked, options({}, 0)).start(), Error);
  for (Job& job : jobs) job.stop();
  for (Job& job : jobs) EXPECT_TRUE(job.result().cancelled());
}

TEST(Jobs, AnEmptyOneHasEnded) {
  const Job job;
  EXPECT_EQ(job.phase(), Job::Phase::ended);
  EXPECT_EQ(job.fd(), -1);
  job.wait();
  EXPECT_THROW(job.result(), Error);
}

}  // namespace
}  // namespace weft::jobs_test
