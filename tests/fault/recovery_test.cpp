/// Jobs that go on after losses: real processes are killed at random instants, and the result must
/// be that of a run that nobody disturbed, bit for bit. WEFT_KILLS: how many kills; 24 by default.

#include <gtest/gtest.h>
#include <sched.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include <weft/tests/support/app_process.hpp>
#include <weft/transport/board.hpp>

namespace weft {
namespace {

using testing::AppProcess;
using testing::expect_nothing_left;
using testing::wait_until;
using Json = nlohmann::json;

constexpr int kWorkers = 4;
constexpr std::uint64_t kSteps = 132;

std::vector<std::string> digits(std::vector<std::string> more = {}) {
  std::vector<std::string> words{DIGITS, "--epochs", "3",      "--workers",      "4", "--chips",
                                 "2",    "--json",   "{json}", "--max-failures", "-1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Json& undisturbed() {
  static const Json result = [] {
    AppProcess app(digits());
    EXPECT_EQ(app.wait(), 0) << app.output();
    return app.result();
  }();
  return result;
}

/// A run of digits and its board.
class DigitsRun {
 public:
  explicit DigitsRun(std::vector<std::string> more = {})
      : app_(digits(std::move(more))),
        job_(app_.job().substr(0, 32)),
        board_(Board::open(job_, true)) {}

  AppProcess& app() { return app_; }
  ActorRow worker(int rank) const { return board_.read(1 + rank); }
  bool over() const {
    return board_.status() == JobStatus::succeeded || board_.status() == JobStatus::failed;
  }
  std::uint64_t step() const {
    std::uint64_t step = 0;
    for (int w = 0; w < kWorkers; ++w) step = std::max(step, worker(w).step);
    return step;
  }
  /// The process of a worker that has come as far as its row; 0 while there is none.
  pid_t pid(int rank) const {
    const ActorRow row = worker(rank);
    return row.state == ActorState::lost || row.state == ActorState::absent ? 0 : row.pid;
  }
  /// False where there is none to kill.
  bool kill(int rank, int signal = SIGKILL) const {
    const pid_t pid = this->pid(rank);
    return pid > 0 && ::kill(pid, signal) == 0;
  }

  /// To the end: nothing is lost, nothing counts twice, nothing is left.
  Json expect_undisturbed_result() {
    EXPECT_EQ(app_.wait(), 0) << app_.output();
    const Json result = app_.result();
    EXPECT_EQ(result.at("params_digest"), undisturbed().at("params_digest")) << app_.output();
    EXPECT_EQ(result.at("loss_history"), undisturbed().at("loss_history")) << app_.output();
    EXPECT_EQ(result.at("steps"), kSteps);
    expect_nothing_left(job_);
    return result;
  }

 private:
  AppProcess app_;
  std::string job_;
  Board board_;
};

/// Instants of every kind, without looking at a clock: a step, a state that a worker is in, and any
/// number of yields after it.
class Killer {
 public:
  explicit Killer(std::uint64_t seed) : random_(seed) {}

  int pick(int limit) { return std::uniform_int_distribution(0, limit - 1)(random_); }

  /// False where the run was over first.
  bool kill_one(const DigitsRun& run) {
    const int rank = pick(kWorkers);
    const std::uint64_t step = run.step() + static_cast<std::uint64_t>(pick(30));
    static constexpr ActorState kStates[] = {ActorState::joining, ActorState::compiling,
                                             ActorState::running, ActorState::idle};
    const ActorState state = kStates[pick(4)];
    const bool by_state = pick(2) == 0;
    int tries = 20'000;  // a state may not come again
    wait_until([&] {
      return run.over() || run.step() >= step || (by_state && run.worker(rank).state == state) ||
             (by_state && --tries == 0);
    });
    for (int i = pick(300); i > 0; --i) ::sched_yield();
    return !run.over() && run.kill(rank);
  }

 private:
  std::mt19937_64 random_;
};

int kill_count() {
  const char* given = std::getenv("WEFT_KILLS");
  return given != nullptr ? std::atoi(given) : 24;
}

TEST(Recovery, KillsAtRandomInstantsChangeNoBitOfTheResult) {
  constexpr int kKillsPerRun = 8;
  int kills = 0;
  for (std::uint64_t seed = 1; kills < kill_count() && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    DigitsRun run;
    Killer killer(seed);
    int done = 0;
    for (int i = 0; i < kKillsPerRun && !run.over(); ++i) done += killer.kill_one(run) ? 1 : 0;
    const Json result = run.expect_undisturbed_result();
    kills += done;
  }
}

TEST(Recovery, TwoWorkersAtOnce) {
  DigitsRun run;
  wait_until([&] { return run.step() >= 20; });
  run.kill(1);
  run.kill(2);
  run.expect_undisturbed_result();
}

TEST(Recovery, AllWorkersAtOnce) {
  DigitsRun run;
  wait_until([&] { return run.step() >= 20; });
  for (int w = 0; w < kWorkers; ++w) run.kill(w);
  run.expect_undisturbed_result();
}

/// Each time as soon as it has come again: the second and third are kills during recovery.
TEST(Recovery, TheSameWorkerThreeTimes) {
  DigitsRun run;
  wait_until([&] { return run.step() >= 20; });
  for (int i = 0; i < 3; ++i) {
    const pid_t pid = run.pid(3);
    run.kill(3);
    wait_until([&] { return run.over() || (run.pid(3) != 0 && run.pid(3) != pid); });
  }
  run.expect_undisturbed_result();
}

TEST(Recovery, ASurvivorDuringTheRecovery) {
  DigitsRun run;
  wait_until([&] { return run.step() >= 20; });
  const pid_t pid = run.pid(0);
  run.kill(0);
  wait_until([&] { return run.over() || (run.pid(0) != 0 && run.pid(0) != pid); });
  run.kill(1);
  run.expect_undisturbed_result();
}

}  // namespace
}  // namespace weft
