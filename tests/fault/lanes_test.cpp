/// Kills processes that exchange blocks, after random numbers of messages. WEFT_LANE_KILLS sets the
/// number of kills. WEFT_SEED=n repeats the order of kills, but not their instants.

#include <gtest/gtest.h>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <weft/tensor/error.hpp>

#include "tests/support/child_process.hpp"
#include "tests/support/forks.hpp"
#include "transport/lanes/burial.hpp"
#include "transport/lanes/lane_node.hpp"

namespace weft::lanes_test {
namespace {

constexpr std::uint32_t kWorkers = 5;
constexpr std::size_t kHeldMax = 24;
/// The limit on dead processes whose slots can't be reused yet, because others hold blocks of their
/// heaps.
constexpr std::size_t kBurialsMax = 20;
constexpr PeerMemoryOptions kMemory{.port_count = 1, .heap_bytes = std::size_t{64} << 20};

/// Memory that the test shares with its workers.
struct Shared {
  std::atomic<int> stop;
  std::atomic<std::uint64_t> sent;
  std::atomic<std::uint64_t> taken;
  std::atomic<std::uint64_t> forwarded;
  std::atomic<std::uint64_t> changed;  ///< blocks that changed while they were held
  /// By slot: how often a worker has taken all its messages since `stop` is 1.
  std::atomic<std::uint64_t> rounds[kPeerCountMax];
};

Shared& shared() { return testing::shared_zeros<Shared>(); }

/// A process that allocates blocks, fills them, sends, forwards, holds and releases them.
class Worker {
 public:
  Worker(PeerTable& table, PeerId self, std::uint64_t seed)
      : table_(table), node_(table, self, kMemory), random_(seed) {}

  void run() {
    while (shared().stop.load(std::memory_order_relaxed) == 0) {
      listen();
      act();
      while (held_.size() > kHeldMax) release(random_() % held_.size());
    }
    // The test stops all workers at once, so each takes messages until no worker has any.
    while (shared().stop.load(std::memory_order_relaxed) == 1) {
      listen();
      while (!held_.empty()) release(0);
      node_.release_taken();
      shared().rounds[node_.self().slot].fetch_add(1);
      sched_yield();
    }
  }

 private:
  struct Held {
    BlockId block;
    std::uint64_t paint;
  };

  void listen() {
    const auto keep = [&](const InMessage& message) {
      shared().taken.fetch_add(1, std::memory_order_relaxed);
      const std::span<const std::byte> body = message.body();
      std::size_t at = 0;
      for (const BlockId block : message.blocks()) {
        Held held{.block = block, .paint = 0};
        std::memcpy(&held.paint, body.data() + at, sizeof(held.paint));
        at += sizeof(held.paint);
        check(held);
        held_.push_back(held);
      }
    };
    node_.settle(0, keep);
    while (const auto message = node_.port(0).take()) keep(*message);
  }

  void act() {
    const std::uint64_t choice = random_();
    const auto slot = static_cast<std::uint32_t>((choice >> 8) % (kWorkers + kBurialsMax));
    switch (choice % 8) {
      case 0:
      case 1:
      case 2: make(); break;
      case 3:
      case 4:
      case 5: send(slot, 1 + (choice >> 16) % 4); break;
      case 6:
        if (!held_.empty()) release((choice >> 16) % held_.size());
        break;
      default: node_.release_taken();
    }
  }

  void make() {
    const std::size_t bytes = std::size_t{1} << (8 + random_() % 8);
    Held held{.block = node_.blocks().allocate(bytes), .paint = random_()};
    const std::span<std::byte> room = node_.blocks().writable(held.block);
    for (std::size_t at = 0; at < room.size(); at += 512) {
      std::memcpy(room.data() + at, &held.paint, sizeof(held.paint));
    }
    held_.push_back(held);
  }

  void send(std::uint32_t slot, std::size_t count) {
    const PeerLife life = table_.life(slot);
    if (held_.empty() || life.state != PeerState::alive || slot == 0) return;
    std::vector<BlockId> blocks;
    std::vector<std::uint64_t> paints;
    for (std::size_t i = 0; i < count; ++i) {
      const Held& held = held_[random_() % held_.size()];
      blocks.push_back(held.block);
      paints.push_back(held.paint);
    }
    try {
      const PeerId to{.slot = slot, .incarnation = life.incarnation};
      if (node_.sender(to, 0)->send({.body = std::as_bytes(std::span(paints)), .blocks = blocks})) {
        shared().sent.fetch_add(1, std::memory_order_relaxed);
        if (blocks[0].owner() != node_.self().slot) {
          shared().forwarded.fetch_add(1, std::memory_order_relaxed);
        }
      }
    } catch (const Error& error) {
      if (error.code() != Errc::peer_lost && error.code() != Errc::not_found) throw;
    }
  }

  void release(std::size_t which) {
    check(held_[which]);
    node_.blocks().release(held_[which].block);
    held_[which] = held_.back();
    held_.pop_back();
  }

  void check(const Held& held) {
    const std::span<const std::byte> bytes = node_.blocks().bytes(held.block);
    for (std::size_t at = 0; at < bytes.size(); at += 512) {
      if (std::memcmp(bytes.data() + at, &held.paint, sizeof(held.paint)) != 0) {
        shared().changed.fetch_add(1);
        return;
      }
    }
  }

  PeerTable& table_;
  LaneNode node_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
};

/// The keeper, which starts, kills and buries workers.
class Keeper {
 public:
  explicit Keeper(std::uint64_t seed) : random_(seed) {
    shared().stop = 0;  // makes the shared memory, before workers inherit it
    const PeerId self = table_.add();
    node_ = std::make_unique<LaneNode>(table_, self, kMemory);
    table_.mark(self.slot, PeerState::alive);
    for (std::uint32_t i = 0; i < kWorkers; ++i) start();
  }
  ~Keeper() {
    for (const auto& [slot, pid] : pids_) kill(pid, SIGKILL);
    PeerTable::remove(system_);
  }

  /// Kills a worker, stopping another one meanwhile now and then, and starts its successor.
  void kill_one() {
    const std::uint64_t last = shared().sent + random_() % 2000;
    while (shared().sent < last) sched_yield();
    auto victim = pids_.begin();
    std::advance(victim, random_() % pids_.size());
    const auto [slot, pid] = *victim;
    pids_.erase(victim);
    const pid_t stopped = random_() % 8 == 0 ? pids_.begin()->second : 0;
    if (stopped != 0) kill(stopped, SIGSTOP);
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    bury(slot);
    if (stopped != 0) {
      advance();
      kill(stopped, SIGCONT);
    }
    do {
      advance();
      if (shared().changed != 0) return;
    } while (burials_.size() > kBurialsMax);
    start();
  }

  void stop() {
    shared().stop = 1;
    while (!burials_.empty()) {
      advance();
      sched_yield();
    }
    // Workers in a round send nothing, so once all workers are in a round, no more messages come.
    // Two rounds later, all messages are taken and their senders have released the blocks.
    for (int round = 0; round < 3; ++round) await_rounds();
    shared().stop = 2;
    for (const auto& [slot, pid] : pids_) {
      int status = 0;
      waitpid(pid, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      bury(slot);
    }
    pids_.clear();
    for (int round = 0; round < 100 && !burials_.empty(); ++round) advance();
    EXPECT_EQ(burials_.size(), 0U) << "processes whose heap is held by nobody that lives";
    EXPECT_EQ(Segment::list("weft-" + system_).size(), 3U);  // the table, and the keeper's own two
  }

 private:
  void await_rounds() {
    std::map<std::uint32_t, std::uint64_t> before;
    for (const auto& [slot, pid] : pids_) before[slot] = shared().rounds[slot];
    for (const auto& [slot, rounds] : before) {
      while (shared().rounds[slot] <= rounds) sched_yield();
    }
  }

  void start() {
    const PeerId self = table_.add();
    const std::uint64_t seed = random_();
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      int status = 0;
      try {
        PeerTable table = PeerTable::open(system_);
        Worker worker(table, self, seed);
        table.mark(self.slot, PeerState::alive);
        worker.run();
      } catch (const std::exception& error) {
        fmt::print(stderr, "worker in slot {}: {}\n", self.slot, error.what());
        status = 1;
      }
      _exit(status);
    }
    while (table_.life(self.slot).state == PeerState::joining &&
           waitpid(pid, nullptr, WNOHANG) == 0) {
      sched_yield();
    }
    pids_[self.slot] = pid;
  }

  void bury(std::uint32_t slot) {
    burials_.push_back(std::make_unique<Burial>(
        table_, node_->peers(),
        PeerId{.slot = slot, .incarnation = table_.life(slot).incarnation}));
    advance();
  }

  void advance() {
    node_->settle(0, [](const InMessage&) {});
    std::erase_if(burials_, [](const auto& burial) { return burial->finish(); });
  }

  std::mt19937_64 random_;
  std::string system_ = testing::unique_job();
  PeerTable table_ = PeerTable::create(system_);
  std::unique_ptr<LaneNode> node_;
  std::map<std::uint32_t, pid_t> pids_;  ///< by slot
  std::vector<std::unique_ptr<Burial>> burials_;
};

TEST(LaneKills, LeakNoBlockAndChangeNoneThatIsHeld) {
  const std::uint64_t kills = testing::number_from_environment("WEFT_LANE_KILLS", 300);
  const std::uint64_t seed = testing::number_from_environment("WEFT_SEED", std::random_device{}());
  SCOPED_TRACE(fmt::format("WEFT_SEED={}", seed));
  Keeper keeper(seed);
  for (std::uint64_t i = 0; i < kills && shared().changed == 0; ++i) {
    ASSERT_NO_FATAL_FAILURE(keeper.kill_one());
  }
  keeper.stop();
  EXPECT_EQ(shared().changed, 0U);
  EXPECT_GT(shared().forwarded, kills);
  fmt::print("{} kills, {} messages sent, {} taken, {} forwarded\n", kills, shared().sent.load(),
             shared().taken.load(), shared().forwarded.load());
}

}  // namespace
}  // namespace weft::lanes_test
