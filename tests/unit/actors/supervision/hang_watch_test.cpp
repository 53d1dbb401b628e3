#include "actors/supervision/hang_watch.hpp"

#include <gtest/gtest.h>

namespace weft::hang_watch_test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{1000};

ActorRow device(int worker, std::uint64_t step, int waiting_for = -1) {
  ActorRow row;
  row.kind = ActorKind::device;
  row.state = ActorState::running;
  row.worker = row.chip = worker;
  row.step = step;
  row.waiting_for = waiting_for;
  return row;
}

ActorRow worker(int rank, ActorState state = ActorState::running) {
  ActorRow row;
  row.kind = ActorKind::worker;
  row.state = state;
  row.worker = rank;
  row.pid = 100 + rank;
  return row;
}

class HangWatchTest : public ::testing::Test {
 protected:
  std::vector<int> observe(const std::vector<ActorRow>& rows, milliseconds at,
                           const std::vector<int>& awaited = {}) {
    const Hang hang = watch.observe({.rows = rows,
                                     .awaited = awaited,
                                     .running = running,
                                     .messages = messages,
                                     .core_time = [this](const ProcessId&) { return ticks; }},
                                    HangWatch::Time() + at);
    all = hang.all;
    return hang.workers;
  }
  HangWatch watch{kTimeout};
  bool running = false;
  std::uint64_t messages = 0;
  std::uint64_t ticks = 0;
  bool all = false;
};

/// Chip 0 waits for chip 1, and chip 1 for chip 2. Chip 2 waits for no chip, so its worker is
/// named.
TEST_F(HangWatchTest, NamesTheOneAtTheEndOfTheWaits) {
  const std::vector<ActorRow> rows{device(0, 7, 1), device(1, 7, 2), device(2, 6)};
  EXPECT_TRUE(observe(rows, milliseconds(0)).empty());
  EXPECT_TRUE(observe(rows, milliseconds(999)).empty());
  EXPECT_EQ(observe(rows, milliseconds(1000)), std::vector{2});
}

/// The watch may read the board before a slow process has opened its rows. Such rows belong to no
/// worker.
TEST_F(HangWatchTest, ARowThatNobodyHasOpenedYetIsOfNoWorker) {
  running = true;
  observe({worker(0), device(-1, 0)}, milliseconds(0));
  observe({worker(0), worker(1)}, milliseconds(200));
  EXPECT_EQ(observe({worker(0), worker(1)}, milliseconds(1200)), (std::vector{0, 1}));
  EXPECT_TRUE(all);
}

TEST_F(HangWatchTest, OneThatMovesDoesNotHang) {
  observe({device(0, 7, 1), device(1, 6)}, milliseconds(0));
  observe({device(0, 7, 1), device(1, 7)}, milliseconds(900));
  EXPECT_TRUE(observe({device(0, 7, 1), device(1, 7)}, milliseconds(1500)).empty());
  EXPECT_EQ(observe({device(0, 7, 1), device(1, 7)}, milliseconds(1900)), std::vector{1});
}

TEST_F(HangWatchTest, OneThatNobodyWaitsForMayStandStill) {
  const std::vector<ActorRow> rows{device(0, 7), device(1, 6)};
  observe(rows, milliseconds(0));
  EXPECT_TRUE(observe(rows, milliseconds(5000)).empty());
  EXPECT_EQ(observe(rows, milliseconds(5001), {1}), std::vector{1}) << "the trainer waits for it";
}

TEST_F(HangWatchTest, NamesAllWhereNobodyMoves) {
  running = true;
  const std::vector<ActorRow> rows{worker(0), device(0, 7), worker(1), device(1, 6)};
  observe(rows, milliseconds(0));
  EXPECT_TRUE(observe(rows, milliseconds(999)).empty());
  EXPECT_EQ(observe(rows, milliseconds(1000)), (std::vector{0, 1}));
  EXPECT_TRUE(all);
}

TEST_F(HangWatchTest, NamesTheOnlyWorker) {
  running = true;
  const std::vector<ActorRow> rows{worker(0), device(0, 7)};
  observe(rows, milliseconds(0));
  EXPECT_EQ(observe(rows, milliseconds(1000)), std::vector{0});
}

TEST_F(HangWatchTest, NamesNotAllWhereOneIsWaitedFor) {
  running = true;
  const std::vector<ActorRow> rows{worker(0), device(0, 7, 1), worker(1), device(1, 6)};
  observe(rows, milliseconds(0));
  EXPECT_EQ(observe(rows, milliseconds(1000)), std::vector{1});
  EXPECT_FALSE(all);
}

TEST_F(HangWatchTest, TellsAHangOnce) {
  running = true;
  observe({worker(0)}, milliseconds(0));
  EXPECT_EQ(observe({worker(0)}, milliseconds(1000)), std::vector{0});
  EXPECT_TRUE(observe({worker(0)}, milliseconds(9000)).empty());
  observe({worker(0), device(0, 1)}, milliseconds(9001));
  EXPECT_EQ(observe({worker(0), device(0, 1)}, milliseconds(10'001)), std::vector{0}) << "another";
}

TEST_F(HangWatchTest, AStepOfOneOrAMessageIsAMoveOfTheJob) {
  running = true;
  observe({worker(0), worker(1), device(1, 1)}, milliseconds(0));
  EXPECT_TRUE(observe({worker(0), worker(1), device(1, 2)}, milliseconds(900)).empty());
  EXPECT_TRUE(observe({worker(0), worker(1), device(1, 2)}, milliseconds(1800)).empty());
  messages = 1;  // the trainer has got one message, a report
  EXPECT_TRUE(observe({worker(0), worker(1), device(1, 2)}, milliseconds(1899)).empty());
  EXPECT_TRUE(observe({worker(0), worker(1), device(1, 2)}, milliseconds(2898)).empty());
  EXPECT_FALSE(observe({worker(0), worker(1), device(1, 2)}, milliseconds(2899)).empty());
}

TEST_F(HangWatchTest, AProcessThatCompilesAndGetsACoreMoves) {
  running = true;
  const std::vector<ActorRow> rows{worker(0, ActorState::compiling)};
  for (int at = 0; at < 5000; at += 500) {
    ticks = static_cast<std::uint64_t>(at);
    EXPECT_TRUE(observe(rows, milliseconds(at), {0}).empty()) << at;
  }
  EXPECT_EQ(observe(rows, milliseconds(5500), {0}), std::vector{0}) << "it gets none";
}

/// A chip's compiler may take minutes, while its loop only waits for the chip.
TEST_F(HangWatchTest, AChipWhoseProgramIsCompiledMoves) {
  running = true;
  ActorRow chip = device(0, 7);
  chip.state = ActorState::compiling;
  const std::vector<ActorRow> rows{worker(0), chip};
  for (int at = 0; at < 5000; at += 500) {
    ticks = static_cast<std::uint64_t>(at);
    EXPECT_TRUE(observe(rows, milliseconds(at), {0}).empty()) << at;
  }
  EXPECT_EQ(observe(rows, milliseconds(5500), {0}), std::vector{0}) << "it gets no core";
}

TEST_F(HangWatchTest, WhereLoopsDontRunNobodyHasToMove) {
  observe({worker(0)}, milliseconds(0));
  EXPECT_TRUE(observe({worker(0)}, milliseconds(5000)).empty());
}

TEST_F(HangWatchTest, AWorkerWhoseLoopHasEndedDoesNotHang) {
  running = true;
  const std::vector<ActorRow> rows{worker(0, ActorState::ended), worker(1)};
  observe(rows, milliseconds(0));
  EXPECT_EQ(observe(rows, milliseconds(1000)), std::vector{1});
}

TEST_F(HangWatchTest, ForgetsWhatWasBeforeAGeneration) {
  const std::vector<ActorRow> rows{device(0, 7, 1), device(1, 6)};
  observe(rows, milliseconds(0));
  watch.forget();
  EXPECT_TRUE(observe(rows, milliseconds(1000)).empty());
  EXPECT_EQ(observe(rows, milliseconds(2000)), std::vector{1});
}

}  // namespace
}  // namespace weft::hang_watch_test
