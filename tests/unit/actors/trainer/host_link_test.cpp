/// Tests the trainer's actor with a fake host, without shared memory, a board or processes.

#include "actors/trainer/host_link.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "actors/trainer/trainer_link.hpp"

namespace weft::host_link_test {
namespace {

/// Workers 0 and 1 are on two hosts, and their processes have the same pid.
constexpr int kPid = 100;

/// A host that returns the values that a test sets, and records the calls.
class FakeHost final : public HostLink {
 public:
  std::uint64_t common_step() const override { return step_; }
  bool has_whole_state() const override { return true; }
  void begin_generation(std::uint64_t step) override { note(fmt::format("begin at {}", step)); }
  void abort(std::string_view why) override { note(fmt::format("abort: {}", why)); }
  void remove_arena_names() override { note("remove names"); }

  std::vector<ActorRow> rows() const override {
    std::vector<ActorRow> rows(2);
    rows[0].step = 99;  // the row of the trainer
    rows[1].kind = ActorKind::worker;
    rows[1].step = step_;
    return rows;
  }
  Whereabouts locate(int worker) const override {
    return {.step = step_, .collective = fmt::format("all_reduce of worker {}", worker)};
  }
  std::string describe_process(const ProcessId&) const override { return "sleeps"; }
  std::uint64_t core_time(const ProcessId&) const override { return 0; }

  void copy_rows(const HostNews&) override { note("copy rows"); }
  void mark_lost(int worker, std::string_view why) override {
    note(fmt::format("mark {}{}", worker, why));
  }
  void set_status(JobStatus status) override { note(fmt::format("{}", to_string(status))); }

  /// Sets the step that all chips have committed. Must be called while the trainer's actor is idle.
  void commit(std::uint64_t step) { step_ = step; }
  std::vector<std::string> take_calls() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  void note(std::string call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }

  std::atomic<std::uint64_t> step_ = 0;
  std::mutex mutex_;
  std::vector<std::string> calls_;  // guarded by mutex_
};

/// Receives the events of the trainer's actor in order.
class Events {
 public:
  void push(TrainerEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  /// Waits for the next event and returns it. Throws bad_variant_access if it has another type.
  template <typename Event>
  Event next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !events_.empty(); })) {
      throw std::runtime_error("the trainer's actor tells nothing");
    }
    const TrainerEvent event = std::move(events_.front());
    events_.pop_front();
    return std::get<Event>(event);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TrainerEvent> events_;  // guarded by mutex_
};

class HostLinkTest : public ::testing::Test {
 protected:
  void start(int max_failures) {
    TrainerLinkOptions options;
    options.spec.num_workers = 2;
    options.spec.chips_per_worker = 1;
    options.spec.timeout_s = 60;
    options.spec.recovery.max_failures = max_failures;
    options.token = "token";
    options.on_event = [this](TrainerEvent event) { events_.push(std::move(event)); };
    trainer_ = TrainerLink::start(std::move(options), host_, Recorder());
    for (int worker = 0; worker < 2; ++worker) trainer_->process_started(worker, kPid);
    for (int worker = 0; worker < 2; ++worker) join(worker);
  }
  void join(int worker) {
    workers_[worker] = trainer_->local_worker(worker, {});
    workers_[worker]->join({.worker = worker, .pid = kPid, .token = "token"});
  }
  void end_loops(std::uint64_t generation) {
    for (int worker = 0; worker < 2; ++worker) {
      workers_[worker]->loop_ended(
          {.worker = worker, .generation = generation, .step = 9, .runs = 9});
    }
  }

  FakeHost host_;
  Events events_;
  std::unique_ptr<TrainerLink> trainer_;
  std::unique_ptr<WorkerLink> workers_[2];
};

using Calls = std::vector<std::string>;

TEST_F(HostLinkTest, AJobWithoutLossesIsBegunAndEnded) {
  start(0);
  EXPECT_EQ(events_.next<trainer_event::Started>().step, 0U);
  EXPECT_EQ(host_.take_calls(), (Calls{"remove names", "running"}));
  host_.commit(9);
  end_loops(1);
  const auto ended = events_.next<trainer_event::Ended>();
  EXPECT_FALSE(ended.failure);
  EXPECT_EQ(ended.step, 9U) << "as the rows of the workers say";
  EXPECT_EQ(host_.take_calls(), Calls{"succeeded"});
}

TEST_F(HostLinkTest, ALossIsMarkedAndAbortsAndTheMemoryIsClearedBeforeLoopsBegin) {
  start(1);
  EXPECT_EQ(events_.next<trainer_event::Started>().generation, 1U);
  EXPECT_EQ(host_.take_calls(), Calls{"running"});
  host_.commit(7);
  workers_[1].reset();
  trainer_->process_ended({.worker = 1, .pid = kPid, .signal = 9});
  const Failure lost = events_.next<trainer_event::Lost>().failure;
  EXPECT_EQ(lost.worker, 1);
  EXPECT_EQ(lost.step, 7U);
  EXPECT_EQ(lost.collective, "all_reduce of worker 1");
  EXPECT_EQ(events_.next<action::Launch>().worker, 1);
  EXPECT_EQ(host_.take_calls(), (Calls{"mark 1", "abort: " + lost.message}));

  trainer_->process_started(1, kPid);
  join(1);
  EXPECT_EQ(host_.take_calls(), Calls{}) << "worker 0 may still use the memory";
  workers_[0]->unwound(2, 7);
  const auto again = events_.next<trainer_event::Started>();
  EXPECT_EQ(again.generation, 2U);
  EXPECT_EQ(again.step, 7U) << "the step that the host has committed";
  EXPECT_EQ(host_.take_calls(), (Calls{"begin at 7", "running"}));
  host_.commit(9);
  end_loops(2);
  EXPECT_FALSE(events_.next<trainer_event::Ended>().failure);
  EXPECT_EQ(host_.take_calls(), Calls{"succeeded"});
}

TEST_F(HostLinkTest, ACancelledJobIsAborted) {
  start(0);
  events_.next<trainer_event::Started>();
  host_.take_calls();
  trainer_->cancel(Errc::cancelled, "enough");
  EXPECT_EQ(events_.next<trainer_event::Ended>().failure->message, "enough");
  EXPECT_EQ(host_.take_calls(), (Calls{"abort: enough", "cancelled"}));
}

}  // namespace
}  // namespace weft::host_link_test
