#include "transport/job/job_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/small_shm.hpp"
#include "transport/board/board.hpp"
#include "transport/channel/channel.hpp"
#include "transport/job/control_format.hpp"

namespace weft::job_memory_test {
namespace {

using testing::ChildProcess;
using testing::expect_error;
using testing::in_own_shm;
using testing::unique_job;

constexpr std::size_t kCapacity = std::size_t{1} << 20;

/// A fixture with the id of a job. The job's segments are removed at the end of a test.
class JobMemoryTest : public ::testing::Test {
 protected:
  ~JobMemoryTest() override { JobMemory::remove(job); }

  JobMemoryOptions options(int num_chips = 3) const {
    return {.job = job, .num_chips = num_chips, .arena_capacity = kCapacity};
  }
  /// Opens the control segment of the job.
  Segment control() const { return Segment::open("weft-" + job + "-control", false, 1); }
  ControlHeader& header(const Segment& segment) const {
    return *reinterpret_cast<ControlHeader*>(segment.data());
  }

  std::string job = unique_job();
};

TEST_F(JobMemoryTest, NamesItsSegmentsByJobAndChip) {
  JobMemory::create(options());
  const std::string prefix = "weft-" + job;
  EXPECT_EQ(Segment::list(prefix),
            (std::vector<std::string>{prefix + "-chip-0", prefix + "-chip-1", prefix + "-chip-2",
                                      prefix + "-control"}));
}

TEST_F(JobMemoryTest, IsSharedByWhoHasItOpenWhenItsArenasHaveNoNames) {
  JobMemory memory = JobMemory::create(options());
  JobMemory opened = JobMemory::open(job);
  Segment::create("weft-" + job + "-channel-rescue", 4096);
  memory.remove_arena_names();
  EXPECT_EQ(Segment::list("weft-" + job),
            (std::vector{"weft-" + job + "-channel-rescue", "weft-" + job + "-control"}));
  expect_error(Errc::not_found, {job}, [&] { JobMemory::open(job); });
  opened.reserve(2, opened.buffers_offset(), 100);
  opened.arena(2)[opened.buffers_offset() + 99] = std::byte{7};
  EXPECT_EQ(memory.arena(2)[memory.buffers_offset() + 99], std::byte{7});
  memory.remove_arena_names();
}

TEST_F(JobMemoryTest, SharesArenasBetweenProcesses) {
  JobMemory memory = JobMemory::create(options());
  ChildProcess child([this] {
    JobMemory opened = JobMemory::open(job);
    opened.reserve(2, opened.buffers_offset(), 100);
    opened.arena(2)[opened.buffers_offset() + 99] = std::byte{7};
  });
  EXPECT_EQ(child.join(), "");
  EXPECT_EQ(memory.num_chips(), 3);
  EXPECT_EQ(memory.arena_capacity(), kCapacity);
  EXPECT_EQ(memory.buffers_offset(), kCapacity / 2);
  EXPECT_EQ(memory.generation(), 1U);
  EXPECT_EQ(memory.arena(2)[memory.buffers_offset() + 99], std::byte{7});
}

TEST_F(JobMemoryTest, MapsFarMoreThanThereIs) {
  const JobMemory memory = JobMemory::anonymous({.job = job, .num_chips = 64});
  EXPECT_EQ(memory.arena_capacity(), std::size_t{8} << 30);
  EXPECT_NE(memory.arena(63), nullptr);
}

TEST_F(JobMemoryTest, GivesEveryGroupOfEveryChipItsOwnLineMailboxesAndRing) {
  for (const int chips : {1, 2, 3, 6, 16}) {
    JobMemory memory = JobMemory::anonymous(options(chips));
    std::set<const void*> places;
    const auto groups = static_cast<int>(group_mask_count(chips));
    for (int group = 0; group < groups; ++group) {
      const auto mask = static_cast<std::uint16_t>(group << 1);
      for (int chip = 0; chip < chips; ++chip) {
        GroupLine& line = memory.group_line(mask, chip);
        EXPECT_EQ(line.announced.load(), 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&line) % 128, 0U);
        places.insert(&line);
        memory.reserve_mailboxes(mask, chip);
        places.insert(memory.mailboxes(mask, chip));
        memory.mailboxes(mask, chip)[2 * kMailboxBytes - 1] = std::byte{1};
        memory.reserve_slot_ring(mask, chip);
        SlotRing& ring = memory.slot_ring(mask, chip);
        EXPECT_EQ(ring.slots[kSlotCount - 1].message.load(), 0U);
        places.insert(&ring);
        std::memset(static_cast<void*>(&ring), 1, kSlotRingBytes);
      }
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(3 * groups * chips));
  }
}

TEST_F(JobMemoryTest, RemovesEveryNameOfTheJobOnly) {
  const std::string other = unique_job();
  JobMemory::create(options());
  JobMemory::create({.job = other, .num_chips = 1, .arena_capacity = kCapacity});
  Board::create({.job = job});
  EXPECT_EQ(JobMemory::remove(job), 5);
  EXPECT_EQ(JobMemory::remove(job), 0);
  EXPECT_EQ(JobMemory::remove(other), 2);
}

TEST_F(JobMemoryTest, RemovesWhatItMadeWhenItFails) {
  const std::string taken = "weft-" + job + "-chip-1";
  const Segment segment = Segment::create(taken, 4096);
  expect_error(Errc::io, {taken}, [&] { JobMemory::create(options()); });
  EXPECT_EQ(Segment::list("weft-" + job), std::vector<std::string>{taken});
}

/// JobMemory, Board and Channel write to their new segments. So create() must reserve the memory of
/// a segment first, and throw if there isn't enough.
TEST_F(JobMemoryTest, WhatDoesNotFitIsNotMade) {
  in_own_shm("size=8k", [this] {
    const auto expect_refused = [&](const std::function<void()>& make) {
      expect_error(Errc::no_space, {job, "of 8192 bytes free", "remount,size=1m", "--shm-size=1m"},
                   make);
    };
    expect_refused([this] { JobMemory::create(options(3)); });
    expect_refused([this] { Board::create({.job = job, .num_workers = 4, .num_chips = 16}); });
    expect_refused([this] {
      Channel::create({.job = job, .name = "rescue", .slot_count = 3, .slot_bytes = 4096});
    });
  });
}

/// The file system has room for the files of some chips, but not for the last chip's.
TEST_F(JobMemoryTest, RemovesTheArenasThatFitWhenALaterOneDoesNot) {
  in_own_shm("size=1m,nr_inodes=4", [this] {
    expect_error(Errc::no_space, {"weft-" + job + "-chip-2", "nr_inodes"},
                 [this] { JobMemory::create(options(3)); });
  });
}

TEST_F(JobMemoryTest, AChipThatGetsNoMemoryLeavesTheOthersTheirs) {
  in_own_shm("size=1m", [this] {
    JobMemory memory = JobMemory::create(options(3));
    const auto buffers = [&](int chip) { return memory.arena(chip) + memory.buffers_offset(); };
    memory.reserve(0, memory.buffers_offset(), 500'000);
    std::memset(buffers(0), 7, 500'000);
    memory.reserve_mailboxes(0, 0);
    expect_error(Errc::no_space, {"chip-1", "500000 bytes", "--shm-size=2m"},
                 [&] { memory.reserve(1, memory.buffers_offset(), 500'000); });
    memory.reserve(1, memory.buffers_offset(), 450'000);
    std::memset(buffers(1), 8, 450'000);
    memory.reserve_mailboxes(0, 1);
    std::memset(memory.mailboxes(0, 1), 9, 2 * kMailboxBytes);
    expect_error(Errc::no_space, {"chip-2", "32768 bytes", "has 12288 of 1048576 bytes free"},
                 [&] { memory.reserve_mailboxes(0, 2); });
    EXPECT_EQ(buffers(0)[499'999], std::byte{7});
    EXPECT_EQ(buffers(1)[449'999], std::byte{8});
    EXPECT_EQ(JobMemory::remove(job), 4);
  });
}

TEST_F(JobMemoryTest, RefusesImpossibleSizes) {
  const auto expect_refused = [&](int num_chips, std::size_t capacity) {
    expect_error(Errc::invalid_argument, {"num_chips", "arena_capacity"}, [&] {
      JobMemory::create({.job = job, .num_chips = num_chips, .arena_capacity = capacity});
    });
  };
  expect_refused(0, kCapacity);
  expect_refused(kLocalChipCountMax + 1, kCapacity);
  expect_refused(1, kCapacity + 4096);
  expect_refused(1, 0);
}

TEST_F(JobMemoryTest, RefusesReservationsOutsideAnArena) {
  JobMemory memory = JobMemory::anonymous(options());
  expect_error(Errc::invalid_argument, {"chip 3"}, [&] { memory.reserve(3, 0, 1); });
  expect_error(Errc::invalid_argument, {"chip 0"}, [&] { memory.reserve(0, kCapacity, 1); });
}

TEST_F(JobMemoryTest, ThrowsNotFoundForAnUnknownJob) {
  expect_error(Errc::not_found, {job}, [&] { JobMemory::open(job); });
}

TEST_F(JobMemoryTest, VerifiesWhatItOpens) {
  JobMemory::create(options());
  const Segment segment = control();
  ControlHeader& format = header(segment);
  const auto expect_refused = [&](Errc code) {
    expect_error(code, {job}, [&] { JobMemory::open(job); });
  };
  format.magic = 0;
  expect_refused(Errc::not_found);
  format.magic = 12345;
  expect_refused(Errc::corrupt);
  format.magic = kControlMagic;
  format.version = kControlVersion + 1;
  expect_refused(Errc::version);
  format.version = kControlVersion;
  format.num_chips = 100;
  expect_refused(Errc::corrupt);
  format.num_chips = 3;
  format.arena_capacity = kCapacity * 2;
  expect_refused(Errc::corrupt);
  format.arena_capacity = kCapacity;
  JobMemory::open(job);
}

TEST_F(JobMemoryTest, KeepsTheFirstReasonToAbort) {
  JobMemory memory = JobMemory::create(options());
  EXPECT_FALSE(memory.aborted());
  EXPECT_EQ(memory.abort_reason(), "");
  ChildProcess child([this] { JobMemory::open(job).abort("worker 3 was killed by signal 9"); });
  EXPECT_EQ(child.join(), "");
  memory.abort("something later");
  EXPECT_TRUE(memory.aborted());
  EXPECT_EQ(memory.abort_reason(), "worker 3 was killed by signal 9");
}

TEST_F(JobMemoryTest, CutsAnEndlessReason) {
  JobMemory memory = JobMemory::anonymous(options());
  memory.abort(std::string(1000, 'x'));
  EXPECT_EQ(memory.abort_reason(), std::string(199, 'x'));
}

TEST_F(JobMemoryTest, IsAbortedEvenIfWhoAbortedDiedBeforeSayingWhy) {
  JobMemory memory = JobMemory::create(options());
  header(control()).abort_state = AbortState::writing_reason;
  EXPECT_TRUE(memory.aborted());
  EXPECT_NE(memory.abort_reason().find("died"), std::string::npos);
}

TEST_F(JobMemoryTest, AGenerationBeginsAsIfNothingHadBeenCalled) {
  JobMemory memory = JobMemory::create(options());
  EXPECT_EQ(memory.generation(), 1U);
  for (int chip = 0; chip < 3; ++chip) {
    for (const std::uint16_t mask : {std::uint16_t{0}, std::uint16_t{2}}) {
      memory.group_line(mask, chip).announced = 7;
      memory.group_line(mask, chip).sleepers = 1;
      memory.reserve_slot_ring(mask, chip);
      memory.group_line(mask, chip).messages = 3;
      memory.slot_ring(mask, chip).slots[3].message = 3;
    }
    memory.call_record(chip).number = 7;
    memory.commit_line(chip).step = static_cast<std::uint64_t>(10 + chip);
    memory.commit_line(chip).sleepers = 1;  // as left by a process killed in its sleep
  }
  memory.abort("worker 1 was killed");
  memory.begin_generation(10);
  const JobMemory opened = JobMemory::open(job);
  EXPECT_EQ(opened.generation(), 2U);
  EXPECT_FALSE(opened.aborted());
  EXPECT_EQ(opened.abort_reason(), "");
  for (int chip = 0; chip < 3; ++chip) {
    for (const std::uint16_t mask : {std::uint16_t{0}, std::uint16_t{2}}) {
      EXPECT_EQ(opened.group_line(mask, chip).announced, 0U);
      EXPECT_EQ(opened.group_line(mask, chip).sleepers, 0U);
      EXPECT_EQ(opened.group_line(mask, chip).messages, 0U);
      EXPECT_EQ(opened.slot_ring(mask, chip).slots[3].message, 0U);
    }
    EXPECT_EQ(opened.call_record(chip).number, 0U);
    EXPECT_EQ(opened.commit_line(chip).step, 10U);
    EXPECT_EQ(opened.commit_line(chip).sleepers, 0U);
  }
  memory.abort("worker 2 was killed");
  EXPECT_EQ(opened.abort_reason(), "worker 2 was killed");
}

}  // namespace
}  // namespace weft::job_memory_test
