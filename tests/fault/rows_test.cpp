/// Kills workers that read rows, and processes that write them, at random instants. WEFT_ROW_KILLS
/// sets the number of kills. WEFT_SEED=n repeats the order of kills, but not their instants.

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/forks.hpp"
#include "transport/memory/wait.hpp"
#include "transport/published/row_order.hpp"
#include "transport/published/row_reader.hpp"
#include "transport/published/row_sender.hpp"

namespace weft::rows_test {
namespace {

constexpr int kWorkers = 2;
constexpr int kSenders = 3;
constexpr std::uint64_t kStep = 32;  ///< rows per step
constexpr std::uint64_t kCapacity = 1024;
constexpr std::size_t kRowsMax = std::size_t{1} << 24;

struct Row {
  std::uint64_t chunk;         ///< made from the sender, its process and a count
  std::uint32_t index;         ///< the row's index in the chunk
  std::uint32_t count;         ///< the number of rows in the chunk
  std::uint64_t filler[13]{};  ///< each is `chunk` + `index`
};

/// Memory that the test shares with its processes.
struct Progress {
  std::atomic<int> stop;               ///< 1: senders end after their chunk; 2: workers end
  std::atomic<std::uint64_t> allowed;  ///< rows that workers may read until the next kill
  std::atomic<std::uint64_t> committed[kWorkers];  ///< rows of the steps that have ended
  std::atomic<std::uint64_t> other;   ///< rows that weren't the same when they were read again
  std::atomic<std::uint64_t> broken;  ///< rows with wrong contents, and failed processes
  std::atomic<std::uint64_t> first[kRowsMax];  ///< by row: a hash of its first reading
};

Progress& progress() { return testing::shared_zeros<Progress>(); }

std::uint64_t committed_by_all() {
  std::uint64_t rows = ~std::uint64_t{0};
  for (const auto& each : progress().committed) rows = std::min(rows, each.load());
  return rows;
}

void check_row(std::uint64_t number, const Row& row) {
  for (const std::uint64_t each : row.filler) {
    if (each != row.chunk + row.index) progress().broken.fetch_add(1);
  }
  const std::uint64_t hash = row.chunk * 1000 + row.index + 1;
  std::uint64_t none = 0;
  if (!progress().first[number].compare_exchange_strong(none, hash) && none != hash) {
    progress().other.fetch_add(1);
  }
}

/// Reads rows step by step, from the first row that some worker hasn't committed.
void run_reader(const std::string& job, int worker) {
  RowMemory memory = RowMemory::open(job, "r");
  std::optional<RowOrder> order;
  if (worker == 0) order.emplace(memory);
  const RowReader reader(memory, worker);
  std::uint64_t row = committed_by_all();
  Row last{};
  while (progress().stop < 2) {
    const std::uint32_t calls = memory.header().calls;
    Row read{};
    if (row >= progress().allowed) {
      sched_yield();
    } else if (reader.read(row, std::vector{std::as_writable_bytes(std::span(&read, 1))})) {
      check_row(row, read);
      const bool follows =
          last.count == 0 ||
          (last.index + 1 == last.count ? read.index == 0
                                        : read.chunk == last.chunk && read.index == last.index + 1);
      if (!follows) progress().broken.fetch_add(1);
      last = read;
      if (++row % kStep == 0) progress().committed[worker] = row;
    } else if (worker != 0) {
      sched_yield();
    }
    if (worker != 0) continue;
    order->take();
    order->release(committed_by_all());
    if (row % 512 == 0) order->collect();
    if (memory.header().chunks == 0) sleep_on(memory.header().calls, calls, kSleepSlice);
  }
}

/// Sends chunks of up to 100 rows.
void run_sender(const std::string& job, std::uint64_t id, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RowSender sender(job, "r");
  const std::uint32_t per_block = sender.memory().rows_per_block();
  for (std::uint64_t chunk = id << 32U; progress().stop == 0; ++chunk) {
    const std::uint64_t count = 1 + random() % 100;
    const auto blocks = sender.take(count);
    if (!blocks) {
      sched_yield();
      continue;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      Row row{.chunk = chunk, .index = i, .count = static_cast<std::uint32_t>(count)};
      std::ranges::fill(row.filler, chunk + i);
      std::memcpy(sender.memory().row((*blocks)[i / per_block], i % per_block), &row, sizeof(row));
    }
    if (random() % 16 == 0) {
      sender.give_back(*blocks);
    } else {
      sender.send(*blocks, count, 0);
    }
  }
}

/// Starts and kills the processes.
class Team {
 public:
  explicit Team(std::uint64_t seed) : random_(seed) {
    progress();  // before processes inherit it
    memory_.header().base = 0;
    start_workers();
    for (int sender = 0; sender < kSenders; ++sender) start_sender();
  }
  ~Team() {
    for (const pid_t pid : workers_) testing::kill_fork(pid);
    for (const pid_t pid : senders_) testing::kill_fork(pid);
    RowMemory::remove(job_, "r");
  }

  void kill_one() {
    const std::uint64_t last = committed_by_all() + random_() % 400;
    progress().allowed = last + 500;
    while (committed_by_all() < last) sched_yield();
    if (random_() % 3 != 0) {
      const std::size_t which = random_() % senders_.size();
      testing::kill_fork(senders_[which]);
      senders_.erase(senders_.begin() + static_cast<std::ptrdiff_t>(which));
      return start_sender();
    }
    // If a job loses one worker, it also ends the generation of the others.
    const std::size_t first = random_() % kWorkers;
    testing::kill_fork(workers_[first]);
    testing::kill_fork(workers_[1 - first]);
    start_workers();
  }

  /// Ends all processes. Then takes and frees the remaining blocks, and expects that nothing is in
  /// use.
  void expect_nothing_leaked() {
    progress().stop = 2;
    for (const pid_t pid : workers_) waitpid(pid, nullptr, 0);
    for (const pid_t pid : senders_) waitpid(pid, nullptr, 0);
    workers_.clear();
    senders_.clear();
    memory_.header().wanted = ~std::uint64_t{0};
    RowOrder order(memory_);
    order.take();
    order.release(~std::uint64_t{0});
    for (std::uint32_t block = 0; block < memory_.block_count(); ++block) {
      EXPECT_EQ(memory_.block(block).owner.load(), 0U) << "block " << block;
    }
  }

 private:
  static pid_t start(const std::function<void()>& body) {
    return testing::start_fork(body, progress().broken);
  }
  void start_workers() {
    workers_.clear();
    // All workers begin at the first row that some worker hadn't committed.
    const std::uint64_t rows = committed_by_all();
    for (auto& each : progress().committed) each = rows;
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers_.push_back(start([&] { run_reader(job_, worker); }));
    }
  }
  void start_sender() {
    const std::uint64_t seed = random_();
    const std::uint64_t id = ++started_;
    senders_.push_back(start([&] { run_sender(job_, id, seed); }));
  }

  std::mt19937_64 random_;
  std::string job_ = testing::unique_job();
  RowMemory memory_ = RowMemory::create(
      job_, "r",
      {.fields = lay_out({{.name = "row", .type = {DType::u8, {sizeof(Row)}}}}, kRowAlignment),
       .capacity = kCapacity});
  std::uint64_t started_ = 0;
  std::vector<pid_t> workers_;
  std::vector<pid_t> senders_;
};

TEST(RowKills, LeakNoBlockAndServeTheSameRowsAgain) {
  const std::uint64_t kills = testing::number_from_environment("WEFT_ROW_KILLS", 300);
  const std::uint64_t seed = testing::number_from_environment("WEFT_SEED", std::random_device{}());
  SCOPED_TRACE(fmt::format("WEFT_SEED={}", seed));
  Team team(seed);
  for (std::uint64_t i = 0; i < kills; ++i) {
    team.kill_one();
    ASSERT_EQ(progress().other + progress().broken, 0U);
  }
  team.expect_nothing_leaked();
  EXPECT_EQ(progress().other, 0U);
  EXPECT_EQ(progress().broken, 0U);
  fmt::print("{} kills, {} rows\n", kills, committed_by_all());
}

}  // namespace
}  // namespace weft::rows_test
