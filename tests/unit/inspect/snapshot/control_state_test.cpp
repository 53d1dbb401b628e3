#include "inspect/snapshot/control_state.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "inspect/snapshot/snapshot_reader.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::control_state_test {
namespace {

constexpr int kChips = 4;

std::vector<std::byte> control_of(const std::string& job) {
  const Segment segment = Segment::open("weft-" + job + "-control", true, 1);
  return {segment.data(), segment.data() + segment.capacity()};
}

class ControlStateTest : public ::testing::Test {
 protected:
  ~ControlStateTest() override { JobMemory::remove(job); }
  const std::string job = testing::unique_job();
  JobMemory memory =
      JobMemory::create({.job = job, .num_chips = kChips, .arena_capacity = std::size_t{1} << 20});
};

TEST_F(ControlStateTest, HasWhatTheChipsHaveWritten) {
  memory.commit_line(2).step.store(7);
  memory.group_line(2, 1).announced.store((std::uint64_t{5} << 32) | 99);
  CollectiveCall call{.kind = CollectiveKind::all_reduce, .atoms = {1}, .count = 3};
  const CallWords words = encode(call);
  write_record(memory.call_record(3), 12, words, signature_of(12, digest_of(words)), "loss");
  const ControlState state = read_control_state(control_of(job));
  ASSERT_EQ(state.chips.size(), 4U);
  EXPECT_EQ(state.chips[2].committed, 7U);
  EXPECT_EQ(state.epoch(1, 2), 5U);
  EXPECT_TRUE(state.is_behind(0, 1, 2));
  EXPECT_FALSE(state.is_behind(1, 0, 2));
  ASSERT_TRUE(state.chips[3].call);
  EXPECT_EQ(state.chips[3].call->number, 12U);
  EXPECT_EQ(state.chips[3].call->name, "loss");
  EXPECT_EQ(state.chips[0].call->number, 0U);
  EXPECT_EQ(state.common_step(), 0U);
  EXPECT_EQ(state.generation, 1U);
  EXPECT_EQ(state.abort_reason, "");
  memory.abort("worker 1 is gone");
  EXPECT_EQ(read_control_state(control_of(job)).abort_reason, "worker 1 is gone");
}

TEST_F(ControlStateTest, ARecordThatIsBeingWrittenIsAbsent) {
  write_record(memory.call_record(0), 12, {}, 1, "x");
  EXPECT_FALSE(read_control_state(control_of(job)).chips[0].call);
}

TEST_F(ControlStateTest, SizesAreCheckedAgainstTheBytes) {
  const std::vector<std::byte> bytes = control_of(job);
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, bytes.size() - 1}) {
    testing::expect_error(Errc::corrupt, {"bytes"},
                          [&] { read_control_state(std::span(bytes).first(size)); });
  }
}

/// Damaged bytes are refused or read, but never crash the reader.
TEST_F(ControlStateTest, SpoiltBytesAreRefusedOrRead) {
  const std::vector<std::byte> good = control_of(job);
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bytes = good;
    for (int i = 0; i < 8; ++i) {
      const bool in_header = random() % 2 == 0;
      bytes[random() % (in_header ? 64 : bytes.size())] = static_cast<std::byte>(random());
    }
    try {
      EXPECT_EQ(read_control_state(bytes).chips.empty(), false);
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == Errc::corrupt || e.code() == Errc::version) << e.what();
    }
  }
}

}  // namespace
}  // namespace weft::control_state_test
