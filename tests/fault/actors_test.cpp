/// Kills processes of actors at random instants while threads call them. Every call must end with
/// the right answer, or with the error that its process was lost. The heaps have room for few
/// tensors, so a leak would soon fill them. WEFT_ACTOR_KILLS sets the number of kills; the default
/// is 60. The test prints how long callers waited for the news of a death, counted from the kill
/// and from the end of the process. The kernel takes milliseconds to end a process, and longer if
/// other processes need the cores.

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <weft/actor.hpp>

#include "actors/launch/process_fd.hpp"
#include "tests/support/forks.hpp"

namespace weft::actors_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProcesses = 2;
constexpr int kActors = 4;
constexpr std::int64_t kWords = 1 << 17;  // 1 MiB
constexpr Clock::rep kRuns = std::numeric_limits<Clock::rep>::max();

/// Returns the median, the 99th percentile and the maximum as text.
std::string quantiles(std::vector<double> ms) {
  std::ranges::sort(ms);
  return fmt::format("{:.2f} ms (median), {:.2f} ms (p99), {:.2f} ms (at most)", ms[ms.size() / 2],
                     ms[ms.size() * 99 / 100], ms.back());
}

class Target {
 public:
  explicit Target(ActorContext& ctx) : ctx_(ctx) {}
  int pid() const { return getpid(); }
  std::int64_t add(std::int64_t a, std::int64_t b) const { return a + b; }
  std::int64_t take(std::int64_t a) { return a + 1; }
  void note(std::int64_t) { ++notes_; }
  /// Returns the tensor's words, each plus 1.
  HostTensor plus_one(const HostTensor& tensor) const {
    LoanedTensor result = ctx_.loan({tensor.elements.dtype(), tensor.shape});
    std::ranges::transform(tensor.get<std::int64_t>(), result.get<std::int64_t>().begin(),
                           [](std::int64_t word) { return word + 1; });
    return std::move(result).finish();
  }
  using endpoints =
      Endpoints<&Target::pid, &Target::add, &Target::take, &Target::note, &Target::plus_one>;

 private:
  ActorContext& ctx_;
  std::int64_t notes_ = 0;
};
const ActorType<Target> target{"fault.target"};

/// The system, and what its callers have seen.
class KilledActors {
 public:
  /// Calls actors in all ways until stop() was called.
  void call_until_stopped(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!is_stopped_.load()) {
      const int index = static_cast<int>(random() % kActors);
      const auto number = static_cast<std::int64_t>(random() >> 2U);
      try {
        call_once(actors_[index], static_cast<int>(random() % 4), number);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::peer_lost) << error.what();
        told(index);
      }
      ++calls_;
    }
  }

  /// Kills a process after a random number of calls. Sometimes stops it first.
  void kill_one(std::mt19937_64& random) {
    const auto process = static_cast<std::size_t>(random() % kProcesses);
    const int pid = actors_[static_cast<int>(process) * kActors / kProcesses]
                        .with({.timeout_s = 600})
                        .call<&Target::pid>()
                        .get();
    const std::uint64_t until = calls_.load() + random() % 100;
    while (calls_.load() < until) std::this_thread::yield();
    if (random() % 4 == 0) ::kill(pid, SIGSTOP);
    const ProcessFd victim(pid);
    killed_at_[process].store(now());
    ended_at_[process].store(kRuns);
    ::kill(pid, SIGKILL);
    pollfd end{.fd = victim.fd(), .events = POLLIN, .revents = 0};
    while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
    }
    ended_at_[process].store(now());
  }

  void stop() { is_stopped_ = true; }
  const std::vector<double>& after_kill_ms() const { return after_kill_ms_; }
  const std::vector<double>& after_end_ms() const { return after_end_ms_; }
  std::uint64_t calls() const { return calls_.load(); }

 private:
  void call_once(const ActorRef<Target>& actor, int way, std::int64_t number) {
    const auto patient = actor.with({.timeout_s = 600});
    if (way == 0) {
      EXPECT_EQ(patient.call<&Target::add>(number, 5).get(), number + 5);
    } else if (way == 1) {
      EXPECT_EQ(patient.call<&Target::take>(number).get(), number + 1);
    } else if (way == 2) {
      patient.tell<&Target::note>(number);
    } else {
      LoanedTensor sent = system_.loan({DType::i64, {kWords}});
      std::ranges::fill(sent.get<std::int64_t>(), number);
      const HostTensor got = patient.call<&Target::plus_one>(std::move(sent).finish()).get();
      const auto words = got.get<std::int64_t>();
      EXPECT_TRUE(std::ranges::all_of(words, [&](auto word) { return word == number + 1; }));
    }
  }
  static Clock::rep now() { return Clock::now().time_since_epoch().count(); }
  static double ms_since(Clock::rep then, Clock::rep now) {
    return std::chrono::duration<double, std::milli>(Clock::duration(now - then)).count();
  }
  /// Records how long ago the process of an actor was killed and how long ago it ended, when a
  /// caller gets the error.
  void told(int index) {
    const auto process = static_cast<std::size_t>(index / (kActors / kProcesses));
    const Clock::rep now_told = now();
    // A caller may get the error before the killing thread has stored the time of the end.
    const Clock::rep ended = std::min(ended_at_[process].load(), now_told);
    const std::lock_guard lock(mutex_);
    after_kill_ms_.push_back(ms_since(killed_at_[process].load(), now_told));
    after_end_ms_.push_back(ms_since(ended, now_told));
  }

  ActorSystem system_{{.name = "killed", .heap_bytes = std::size_t{48} << 20}};
  ActorMesh<Target> actors_ =
      system_.spawn(target, {.count = kActors,
                             .place = processes(kProcesses),
                             .supervision = {.max_restarts = -1, .backoff_s = 0}});
  std::atomic<bool> is_stopped_ = false;
  std::atomic<std::uint64_t> calls_ = 0;
  std::array<std::atomic<Clock::rep>, kProcesses> killed_at_{};
  std::array<std::atomic<Clock::rep>, kProcesses> ended_at_{};  ///< kRuns until the end
  std::mutex mutex_;
  std::vector<double> after_kill_ms_;  // guarded by mutex_, like the next member
  std::vector<double> after_end_ms_;
};

TEST(KilledActors, AnswerRightlyOrSayThatTheyAreLost) {
  KilledActors actors;
  std::vector<std::jthread> callers;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    callers.emplace_back([&actors, seed] { actors.call_until_stopped(seed); });
  }
  std::mt19937_64 random(3);
  const std::uint64_t kills = testing::number_from_environment("WEFT_ACTOR_KILLS", 60);
  for (std::uint64_t kill = 0; kill < kills; ++kill) actors.kill_one(random);
  actors.stop();
  callers.clear();
  ASSERT_FALSE(actors.after_kill_ms().empty());
  fmt::print("{} kills, {} calls; {} callers were told, after the kill {}, after the end {}\n",
             kills, actors.calls(), actors.after_kill_ms().size(),
             quantiles(actors.after_kill_ms()), quantiles(actors.after_end_ms()));
}

}  // namespace
}  // namespace weft::actors_test

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
