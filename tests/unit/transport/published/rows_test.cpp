#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "transport/published/row_order.hpp"
#include "transport/published/row_reader.hpp"
#include "transport/published/row_sender.hpp"

namespace weft::rows_test {
namespace {

using testing::expect_error;
using testing::unique_job;

/// A row has 16 bytes, so a block has 8 rows.
const std::vector<PublishedTensor> kFields = lay_out(
    {{.name = "number", .type = {DType::i64, {}}}, {.name = "state", .type = {DType::f32, {2}}}},
    kRowAlignment);

/// A job whose worker 0 is this process, with 8 blocks of 8 rows.
class RowsOfAJob : public ::testing::Test {
 protected:
  ~RowsOfAJob() override { RowMemory::remove(job_, "steps"); }

  /// Sends rows with the numbers `first`, `first` + 1, ... Returns false if there is no room.
  static bool send(RowSender& sender, std::int64_t first, std::uint64_t count,
                   std::uint64_t version = 0) {
    const auto blocks = sender.take(count);
    if (!blocks) return false;
    fill(sender, *blocks, first, count);
    sender.send(*blocks, count, version);
    return true;
  }
  static void fill(RowSender& sender, const std::vector<std::uint32_t>& blocks, std::int64_t first,
                   std::uint64_t count) {
    const std::uint32_t per_block = sender.memory().rows_per_block();
    for (std::uint64_t i = 0; i < count; ++i) {
      std::byte* const row =
          sender.memory().row(blocks[i / per_block], static_cast<std::uint32_t>(i % per_block));
      const std::int64_t number = first + static_cast<std::int64_t>(i);
      std::memcpy(row + kFields[0].offset, &number, sizeof(number));
      const std::vector<float> state(2, static_cast<float>(number));
      std::memcpy(row + kFields[1].offset, state.data(), 8);
    }
  }
  /// Returns the number in a row; nothing if the row hasn't arrived, -1 if its state doesn't fit
  /// its number.
  std::optional<std::int64_t> read(std::uint64_t row) const {
    std::int64_t number = 0;
    std::vector<float> state(2);
    const std::vector<std::span<std::byte>> out{std::as_writable_bytes(std::span(&number, 1)),
                                                std::as_writable_bytes(std::span(state))};
    if (!reader_.read(row, out)) return std::nullopt;
    const auto is_right = [&](float value) { return value == static_cast<float>(number); };
    return std::ranges::all_of(state, is_right) ? number : -1;
  }
  std::int64_t free_blocks() const {
    std::int64_t count = 0;
    for (std::uint32_t block = 0; block < memory_.block_count(); ++block) {
      count += memory_.block(block).owner.load() == 0 ? 1 : 0;
    }
    return count;
  }
  RowHeader& header() const { return memory_.header(); }

  std::string job_ = unique_job();
  RowMemory memory_ =
      RowMemory::create(job_, "steps", {.fields = kFields, .capacity = 8, .max_lag = 2});
  RowReader reader_{memory_, 0};
};

TEST_F(RowsOfAJob, AreReadInTheOrderOfTheirArrival) {
  RowSender a(job_, "steps");
  RowSender b(job_, "steps");
  RowOrder order(memory_);
  ASSERT_EQ(memory_.rows_per_block(), 8U);
  EXPECT_FALSE(read(0));
  order.take();
  EXPECT_FALSE(read(0));
  ASSERT_TRUE(send(a, 100, 20));
  ASSERT_TRUE(send(b, 200, 3));
  ASSERT_TRUE(send(a, 300, 8));
  order.take();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read(static_cast<std::uint64_t>(i)), 100 + i);
  EXPECT_FALSE(read(22)) << "only wanted rows are taken";
  order.take();
  EXPECT_EQ(read(20), 200);
  EXPECT_EQ(read(22), 202);
  EXPECT_FALSE(read(30));
  order.take();
  EXPECT_EQ(read(30), 307);
  EXPECT_FALSE(read(31));
}

TEST_F(RowsOfAJob, BeginWithTheFirstRowThatWorker0Reads) {
  RowSender sender(job_, "steps");
  RowOrder order(memory_);
  ASSERT_TRUE(send(sender, 5, 4));
  const RowReader other(memory_, 1);
  EXPECT_FALSE(other.read(1002, {}));
  order.take();
  EXPECT_EQ(header().chunks.load(), 0U);
  EXPECT_FALSE(read(1000));
  order.take();
  EXPECT_EQ(read(1002), 7);
  expect_error(Errc::not_found, {"row 999 is kept no more"}, [&] { read(999); });
}

TEST_F(RowsOfAJob, KeepTheirBytesUntilTheyAreReleased) {
  RowSender sender(job_, "steps");
  RowOrder order(memory_);
  EXPECT_FALSE(read(63));
  header().base = 0;
  for (int chunk = 0; chunk < 8; ++chunk) ASSERT_TRUE(send(sender, 8 * chunk, 8));
  EXPECT_FALSE(send(sender, 64, 1)) << "all blocks are in use";
  EXPECT_EQ(header().sender_waits.load(), 1U);
  order.take();
  order.release(15);  // row 15 keeps the second chunk
  EXPECT_EQ(free_blocks(), 1);
  expect_error(Errc::not_found, {"row 7 "}, [&] { read(7); });
  EXPECT_EQ(read(8), 8);
  EXPECT_TRUE(send(sender, 64, 1));
  order.release(64);
  EXPECT_EQ(free_blocks(), 7) << "the chunk that nobody wants yet still waits";
  EXPECT_FALSE(read(64));
  order.take();
  EXPECT_EQ(read(64), 64);
  EXPECT_FALSE(sender.take(65)) << "more than there is memory for";
}

TEST_F(RowsOfAJob, AreDroppedIfTheyAreTooOld) {
  RowSender sender(job_, "steps");
  RowOrder order(memory_);
  EXPECT_FALSE(read(0));
  header().step = 10;
  ASSERT_TRUE(send(sender, 1, 8, 7));
  ASSERT_TRUE(send(sender, 2, 8, 8));
  order.take();
  EXPECT_EQ(read(0), 2);
  EXPECT_EQ(header().dropped_rows.load(), 8U);
  EXPECT_EQ(header().lag.load(), 2U);
  EXPECT_EQ(free_blocks(), 7);
}

TEST_F(RowsOfAJob, ThatADeadSenderHadNotSentAreFree) {
  testing::ChildProcess sender([&] {
    RowSender its(job_, "steps");
    if (!send(its, 0, 16) || !its.take(24)) throw std::runtime_error("no room");
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(sender.join(), "killed by signal 9");
  EXPECT_EQ(free_blocks(), 3);
  RowSender next(job_, "steps");  // the dead sender's number isn't free yet
  ASSERT_TRUE(next.take(8));
  RowOrder order(memory_);
  EXPECT_EQ(free_blocks(), 5) << "what has arrived and what a living sender has isn't free";
  EXPECT_FALSE(read(15));
  order.collect();
  header().base = 0;
  order.take();
  EXPECT_EQ(read(15), 15);
  order.release(16);
  EXPECT_EQ(free_blocks(), 7);
}

TEST_F(RowsOfAJob, AreTakenOnceByTheNextWorker0) {
  RowSender sender(job_, "steps");
  EXPECT_FALSE(read(20));
  header().base = 0;
  ASSERT_TRUE(send(sender, 0, 8));
  ASSERT_TRUE(send(sender, 8, 8));
  ASSERT_TRUE(send(sender, 16, 8));
  {
    RowOrder first(memory_);
    first.take();
  }
  header().taken = 2;  // as if worker 0 had been killed before it counted the third arrival
  RowOrder second(memory_);
  second.take();
  EXPECT_EQ(header().taken.load(), 3U);
  EXPECT_EQ(header().chunks.load(), 3U);
  EXPECT_EQ(read(20), 20);
  header().released = 1;  // as if worker 0 had been killed before it freed the first chunk's block
  RowOrder third(memory_);
  EXPECT_EQ(free_blocks(), 6);
  EXPECT_EQ(read(8), 8);
}

TEST_F(RowsOfAJob, OfADamagedSegmentAreRefused) {
  const auto expect_corrupt = [&](auto& field, auto value) {
    const auto before = std::exchange(field, value);
    expect_error(Errc::corrupt, {}, [&] { RowMemory::open(job_, "steps"); });
    field = before;
  };
  RowHeader& its = header();
  expect_corrupt(its.field_count, ~0U);
  expect_corrupt(its.name_bytes, ~std::uint64_t{0});
  expect_corrupt(its.row_bytes, std::uint64_t{0});
  expect_corrupt(its.row_bytes, std::uint64_t{1} << 63U);
  expect_corrupt(its.row_bytes, std::uint64_t{1001});
  expect_corrupt(its.rows_per_block, 0U);
  expect_corrupt(its.rows_per_block, ~0U);
  expect_corrupt(its.block_count, 0U);
  expect_corrupt(its.block_count, kRowBlocksMax);
  expect_corrupt(its.worker_count, 0U);
  expect_corrupt(its.worker_count, 257U);
  expect_corrupt(its.magic, std::uint64_t{1});
  const auto format = std::exchange(its.format, 7U);
  expect_error(Errc::version, {"version 7"}, [&] { RowMemory::open(job_, "steps"); });
  its.format = format;
}

TEST_F(RowsOfAJob, OfASenderThatLiesAreSkipped) {
  RowSender sender(job_, "steps");
  RowOrder order(memory_);
  EXPECT_FALSE(read(0));
  const auto blocks = sender.take(16);
  ASSERT_TRUE(blocks);
  sender.send(*blocks, 16, 0);
  memory_.block(blocks->front()).next = 1000;
  memory_.arrival(2) = ArrivalWord{.number = 2, .block = 0xff'ffff}.word();
  ASSERT_TRUE(send(sender, 3, 8));
  order.take();
  EXPECT_EQ(read(0), 3);
}

TEST_F(RowsOfAJob, TheirBytesStay) {
  RowSender sender(job_, "steps");
  ASSERT_TRUE(send(sender, 100, 10, 3));  // two blocks
  RowOrder order(memory_);
  order.take();
  ASSERT_TRUE(send(sender, 200, 1, 4));  // hasn't been taken
  std::memset(header().control_root, 0, sizeof(RowHeader::control_root));
  EXPECT_EQ(header().senders[0].pid, ::getpid());
  EXPECT_GT(header().senders[0].sent_ns, 0);
  header().senders[0].pid = 4711;
  header().senders[0].sent_ns = 42;

  std::string bytes;
  const auto add = [&](const void* from, std::size_t size) {
    bytes.append(static_cast<const char*>(from), size);
  };
  const std::size_t table = sizeof(RowHeader) + kFields.size() * sizeof(TensorEntry);
  add(memory_.segment().data(), table + header().name_bytes);
  add(&memory_.block(0), 3 * sizeof(RowBlock));
  add(&memory_.arrival(1), 2 * sizeof(std::uint64_t));
  add(&memory_.chunk(0), sizeof(RowChunk));
  add(memory_.row(0, 0), 3 * 8 * 16);
  testing::expect_golden("rows-v2.bin", bytes);
}

}  // namespace
}  // namespace weft::rows_test
