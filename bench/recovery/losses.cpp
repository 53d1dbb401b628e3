#include "bench/recovery/losses.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <random>

#include <weft/job/result.hpp>
#include <weft/tensor/error.hpp>

#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/state/commits.hpp"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// The interval at which the job's memory is read. A reader that spins would take a core from the
/// job.
constexpr auto kLook = 50us;
constexpr auto kPatience = 60s;
/// The minimum and maximum numbers of steps between a job's first step after a loss and the next
/// kill.
constexpr int kStepsMin = 5;
constexpr int kStepsMax = 25;

class Watcher {
 public:
  Watcher(const std::string& job, std::uint64_t seed, int at_once, std::stop_token stop)
      : board_(Board::open(job, true)),
        memory_(JobMemory::open(job)),
        at_once_(at_once),
        stop_(std::move(stop)),
        random_(seed) {}

  /// Kills `at_once` workers after the job has run undisturbed for a while.
  Loss kill_one() {
    const std::uint64_t until = common_step(memory_) + draw(kStepsMin, kStepsMax);
    wait([&] { return common_step(memory_) >= until; }, "run undisturbed");
    std::this_thread::sleep_for(std::chrono::microseconds(draw(0, 5000)));

    Loss loss;
    loss.victim = static_cast<int>(draw(0, board_.header().num_workers - 1));
    const ActorRow victim = board_.read(1 + loss.victim);
    const std::uint32_t generation = memory_.generation();
    const std::uint64_t taken = steps_ended();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < at_once_; ++i) {
      const int worker = (loss.victim + i) % board_.header().num_workers;
      const int pid = board_.read(1 + worker).pid;
      if (pid <= 0 || ::kill(pid, SIGKILL) != 0) {
        fail(Errc::peer_lost, "worker {} (pid {}) can't be killed", worker, pid);
      }
    }
    const auto passed = [&](auto condition, const char* what) {
      wait(condition, what);
      return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    };
    const auto is_over = [&] { return memory_.generation() != generation; };
    loss.noticed_ms = passed([&] { return memory_.aborted() || is_over(); }, "notice a loss");
    loss.started_ms = passed([&] { return board_.read(1 + loss.victim).pid != victim.pid; },
                             "start a worker again");
    loss.resumed_ms = passed(is_over, "begin again");
    // A step that began at `resumed` may already be running, but even the shortest step can't have
    // ended.
    const std::uint64_t resumed = common_step(memory_);
    loss.steps_again = std::max(taken, resumed) - resumed;
    loss.stepped_ms = passed([&] { return common_step(memory_) > resumed; }, "take a step");
    return loss;
  }

 private:
  std::uint64_t draw(int least, int most) {
    return static_cast<std::uint64_t>(std::uniform_int_distribution(least, most)(random_));
  }

  std::uint64_t steps_ended() const {
    std::uint64_t steps = 0;
    for (int w = 0; w < board_.header().num_workers; ++w) {
      steps = std::max(steps, board_.read(1 + w).step);
    }
    return steps;
  }

  template <typename Condition>
  void wait(Condition condition, const char* what) const {
    const auto deadline = Clock::now() + kPatience;
    while (!condition()) {
      if (stop_.stop_requested()) fail(Errc::cancelled, "the job ended before it could {}", what);
      if (Clock::now() > deadline) fail(Errc::timeout, "the job didn't {} within {} s", what, 60);
      std::this_thread::sleep_for(kLook);
    }
  }

  Board board_;
  JobMemory memory_;
  const int at_once_;
  std::stop_token stop_;
  std::mt19937_64 random_;
};

}  // namespace

std::uint64_t LossMaker::steps_of_job(int kills) {
  return static_cast<std::uint64_t>(kills + 1) * (kStepsMax + 5);
}

void LossMaker::on_start(const JobInfo& job) {
  thread_ = std::jthread([this, id = job.id](std::stop_token stop) { run(id, std::move(stop)); });
}

void LossMaker::on_end(const Result& result) {
  thread_.request_stop();
  thread_.join();
  if (result.error) why_ = result.error->message;
}

void LossMaker::run(const std::string& job, std::stop_token stop) {
  try {
    Watcher watcher(job, seed_, at_once_, std::move(stop));
    while (std::ssize(losses_) < kills_) losses_.push_back(watcher.kill_one());
  } catch (const Error& e) {
    why_ = e.what();
  }
}

}  // namespace weft::bench
