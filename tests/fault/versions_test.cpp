/// Kills workers that publish versions, and processes that read them, at random instants.
/// WEFT_VERSION_KILLS sets the number of kills. WEFT_SEED=n repeats the order of kills, but not
/// their instants.

#include <gtest/gtest.h>

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/forks.hpp"
#include "transport/published/version_reader.hpp"
#include "transport/published/version_writer.hpp"

namespace weft::versions_test {
namespace {

constexpr int kWorkers = 2;
constexpr int kReaders = 4;
constexpr std::size_t kWords = 2048;  ///< words of a version; each worker copies a half
constexpr std::size_t kVersionsMax = std::size_t{1} << 22;

/// Memory that the test shares with its processes.
struct Seen {
  std::atomic<std::uint64_t> holds;
  std::atomic<std::uint64_t> torn;      ///< versions that had words of two versions
  std::atomic<std::uint64_t> changed;   ///< versions that changed while they were held
  std::atomic<std::uint64_t> twice;     ///< versions that were published twice
  std::atomic<std::uint64_t> backward;  ///< versions that were older than one held before
  std::atomic<std::uint64_t> failed;    ///< processes that threw an exception
  /// By version: the word that its first reader found, which has the generation.
  std::atomic<std::uint64_t> first[kVersionsMax];
};

Seen& seen() { return testing::shared_zeros<Seen>(); }

/// Copies a worker's half of each version, one after the other.
void run_worker(const std::string& job, int worker, std::uint64_t generation,
                std::uint64_t version) {
  PublishedMemory memory = PublishedMemory::open(job, "w", false);
  VersionWriter writer(memory, worker);
  for (std::uint64_t n = (generation << 40U) + 1; version < kVersionsMax; ++n, ++version) {
    const auto wait_until = [](const std::function<bool()>& done) {
      while (!done()) sched_yield();
    };
    if (worker == 0) writer.decide(n, version);
    wait_until([&] { return writer.is_decided(n); });
    std::byte* const place = writer.destination(n, version);
    if (place == nullptr) continue;
    auto* words = reinterpret_cast<std::uint64_t*>(place);
    for (std::size_t i = 0; i < kWords / kWorkers; ++i) {
      words[static_cast<std::size_t>(worker) * kWords / kWorkers + i] = generation << 40U | version;
    }
    writer.copied(n);
    if (worker == 0) wait_until([&] { return writer.publish(n, version); });
  }
}

/// Holds versions for random times, up to three at once.
void run_reader(const std::string& job, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  VersionReader reader(job, "w");
  struct Hold {
    VersionReader::Held held;
    std::uint64_t word;
  };
  std::vector<Hold> holds;
  std::uint64_t last = 0;
  const auto look = [&](const VersionReader::Held& held) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(reader.memory().place(held.place));
    for (std::size_t i = 1; i < kWords; ++i) {
      if (words[i] != words[0]) seen().torn.fetch_add(1);
    }
    if ((words[0] & ((std::uint64_t{1} << 40U) - 1)) != held.version) seen().torn.fetch_add(1);
    return words[0];
  };
  for (;;) {
    if (const auto held = reader.hold_newest()) {
      const Hold hold{.held = *held, .word = look(*held)};
      std::uint64_t none = 0;
      if (!seen().first[held->version].compare_exchange_strong(none, hold.word) &&
          none != hold.word) {
        seen().twice.fetch_add(1);
      }
      if (held->version < last) seen().backward.fetch_add(1);
      last = held->version;
      holds.push_back(hold);
      seen().holds.fetch_add(1, std::memory_order_relaxed);
    }
    if (random() % 4 == 0) sched_yield();
    while (holds.size() > random() % 4) {
      const std::size_t which = random() % holds.size();
      if (look(holds[which].held) != holds[which].word) seen().changed.fetch_add(1);
      reader.release(holds[which].held.place);
      holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
}

/// Starts and kills the processes.
class Processes {
 public:
  explicit Processes(std::uint64_t seed) : random_(seed) {
    seen();  // before processes inherit it
    start_workers(0);
    for (int reader = 0; reader < kReaders; ++reader) start_reader();
  }
  ~Processes() {
    for (const pid_t pid : workers_) testing::kill_fork(pid);
    for (const pid_t pid : readers_) testing::kill_fork(pid);
    PublishedMemory::remove(job_, "w");
  }

  void kill_one() {
    const std::uint64_t last = seen().holds + random_() % 200;
    while (seen().holds < last) sched_yield();
    if (random_() % 3 != 0) return kill_reader();
    // If a job loses one worker, it also ends the generation of the others.
    const std::size_t first = random_() % kWorkers;
    testing::kill_fork(workers_[first]);
    testing::kill_fork(workers_[1 - first]);
    const std::uint64_t newest = watcher().newest().value_or(0);
    start_workers(newest - std::min<std::uint64_t>(newest, random_() % 4));
  }

  /// Ends all processes. Then holds the newest version, and publishes and holds seven more. That
  /// needs all places, so none is left for one more.
  void expect_nothing_leaked() {
    for (const pid_t pid : workers_) testing::kill_fork(pid);
    for (const pid_t pid : readers_) testing::kill_fork(pid);
    workers_.clear();
    readers_.clear();
    PublishedMemory memory = PublishedMemory::open(job_, "w", false);
    std::vector<VersionWriter> workers;
    for (int worker = 0; worker < kWorkers; ++worker) workers.emplace_back(memory, worker);
    VersionReader reader(job_, "w");
    const auto held = reader.hold_newest();
    ASSERT_TRUE(held);
    const std::uint64_t newest = held->version;
    for (std::uint64_t n = 1; n <= kVersionCountMax; ++n) {
      const std::uint64_t publication = (++generation_ << 40U) + n;
      workers[0].decide(publication, newest + n);
      const bool is_last = n == kVersionCountMax;
      ASSERT_EQ(workers[0].destination(publication, newest + n) == nullptr, is_last) << n;
      if (is_last) break;
      for (VersionWriter& worker : workers) worker.copied(publication);
      ASSERT_TRUE(workers[0].publish(publication, newest + n));
      ASSERT_TRUE(reader.hold_newest());
    }
  }

 private:
  static pid_t start(const std::function<void()>& body) {
    return testing::start_fork(body, seen().failed);
  }
  void start_workers(std::uint64_t version) {
    workers_.clear();
    ++generation_;
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers_.push_back(start([&] { run_worker(job_, worker, generation_, version); }));
    }
  }
  void start_reader() {
    const std::uint64_t seed = random_();
    readers_.push_back(start([&] { run_reader(job_, seed); }));
  }
  void kill_reader() {
    const std::size_t which = random_() % readers_.size();
    const pid_t stopped = random_() % 4 == 0 ? readers_[(which + 1) % readers_.size()] : 0;
    if (stopped != 0) kill(stopped, SIGSTOP);
    testing::kill_fork(readers_[which]);
    readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(which));
    start_reader();
    if (stopped == 0) return;
    const std::uint64_t last = seen().holds + 50;
    while (seen().holds < last) sched_yield();
    kill(stopped, SIGCONT);
  }
  VersionReader& watcher() {
    if (!watcher_) watcher_.emplace(job_, "w");
    return *watcher_;
  }

  std::mt19937_64 random_;
  std::string job_ = testing::unique_job();
  PublishedMemory memory_ = PublishedMemory::create(
      job_, "w", lay_out({{.name = "w", .type = {DType::i64, {kWords}}}}), kWorkers);
  std::uint64_t generation_ = 0;
  std::vector<pid_t> workers_;
  std::vector<pid_t> readers_;
  std::optional<VersionReader> watcher_;
};

TEST(VersionKills, LeakNoPlaceAndChangeNoVersionThatIsHeld) {
  const std::uint64_t kills = testing::number_from_environment("WEFT_VERSION_KILLS", 300);
  const std::uint64_t seed = testing::number_from_environment("WEFT_SEED", std::random_device{}());
  SCOPED_TRACE(fmt::format("WEFT_SEED={}", seed));
  Processes processes(seed);
  for (std::uint64_t i = 0; i < kills; ++i) {
    processes.kill_one();
    ASSERT_EQ(seen().torn + seen().changed + seen().twice + seen().backward + seen().failed, 0U);
  }
  processes.expect_nothing_leaked();
  EXPECT_EQ(seen().torn, 0U);
  EXPECT_EQ(seen().changed, 0U);
  EXPECT_EQ(seen().twice, 0U);
  EXPECT_EQ(seen().backward, 0U);
  fmt::print("{} kills, {} holds\n", kills, seen().holds.load());
}

}  // namespace
}  // namespace weft::versions_test
