#include "transport/job/remains.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/board/board.hpp"
#include "transport/format/run_card.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::remains_test {
namespace {

namespace fs = std::filesystem;
using testing::unique_job;

/// A fixture with a job's id and a control root that only this process uses. It makes the job's
/// files in the control root.
class RemainsTest : public ::testing::Test {
 protected:
  RemainsTest() {
    fs::create_directories(runtime);
    ::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
    root = make_control_root();
  }
  ~RemainsTest() override {
    for (const std::string& name : Segment::list("weft-" + job)) Segment::remove(name);
    ::unsetenv("XDG_RUNTIME_DIR");
    fs::remove_all(runtime);
  }

  std::optional<JobRemains> find() const {
    for (const JobRemains& remains : find_remains()) {
      if (remains.job == job) return remains;
    }
    return {};
  }
  JobLife life() const { return find().value_or(JobRemains{}).life; }
  /// Sets the times of all files of the job to a time long ago.
  void age() const {
    const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    for (const std::string& name : Segment::list("weft-" + job)) {
      ASSERT_EQ(::utimensat(AT_FDCWD, ("/dev/shm/" + name).c_str(), long_ago, 0), 0);
    }
    ::utimensat(AT_FDCWD, folder_in(root, job).c_str(), long_ago, 0);
  }
  void plant_memory() const {
    JobMemory::create({.job = job, .num_chips = 2, .arena_capacity = 2 * kArenaCapacityUnit});
    Segment::create("weft-" + job + "-channel-rescue", 4096);
  }

  fs::path runtime = fs::path("/tmp") / ("weft-remains-" + unique_job());
  std::string root;
  std::string job = unique_job();
};

TEST_F(RemainsTest, AJobThatLeftNothingIsNotThere) { EXPECT_FALSE(find()); }

TEST_F(RemainsTest, WhatNobodyHoldsIsDeadAndAllOfItIsRemoved) {
  plant_memory();
  Segment::create("weft-" + job + "-of-another-version", 4096);
  { const JobLock lock = JobLock::take(root, job); }
  make_private_folder(folder_in(root, job));
  std::ofstream(folder_in(root, job) + "/control") << "x";
  const auto remains = find();
  ASSERT_TRUE(remains);
  EXPECT_EQ(remains->life, JobLife::dead) << remains->why;
  EXPECT_EQ(remains->segments.size(), 5U);
  EXPECT_GT(remains->bytes, 0U);
  EXPECT_EQ(remains->roots, std::vector{root});
  EXPECT_EQ(remove_remains(*remains), std::vector<std::string>{});
  EXPECT_FALSE(find());
  EXPECT_TRUE(fs::is_empty(root));
}

TEST_F(RemainsTest, AJobWhoseLockIsHeldLives) {
  plant_memory();
  age();
  const JobLock lock = JobLock::take(root, job);
  const auto remains = find();
  ASSERT_TRUE(remains);
  EXPECT_EQ(remains->life, JobLife::alive);
  EXPECT_NE(remains->why.find(lock_in(root, job)), std::string::npos) << remains->why;
  EXPECT_EQ(remove_remains(*remains).size(), 5U);
  EXPECT_EQ(find()->segments, remains->segments);
}

/// Only the lock of the board shows that this job lives, because its control root may be in another
/// container.
TEST_F(RemainsTest, AJobWhoseBoardIsLockedLives) {
  std::optional<Board> board = Board::create({.job = job, .num_chips = 1});
  age();
  EXPECT_EQ(find()->why, "its board is locked");
  EXPECT_TRUE(Board::is_held(job));
  board.reset();
  EXPECT_FALSE(Board::is_held(job));
  EXPECT_EQ(life(), JobLife::dead);
}

TEST_F(RemainsTest, AJobWhoseMemoryAProcessHasOpenLives) {
  plant_memory();
  age();
  std::optional<Segment> segment = Segment::open("weft-" + job + "-chip-1", true, 1);
  EXPECT_EQ(find()->why, fmt::format("process {} has its memory open", ::getpid()));
  segment.reset();
  EXPECT_EQ(life(), JobLife::dead);
}

TEST_F(RemainsTest, AJobThatStartsHasTime) {
  plant_memory();
  EXPECT_EQ(life(), JobLife::starting);
  EXPECT_EQ(remove_remains(*find()).size(), 4U);
  age();
  EXPECT_EQ(life(), JobLife::dead);
}

/// Removal checks again whether a job lives, because it may have come to life since it was found
/// dead.
TEST_F(RemainsTest, RemovalBelievesNoOldNews) {
  plant_memory();
  age();
  auto remains = find();
  ASSERT_EQ(remains->life, JobLife::dead);
  const Board board = Board::create({.job = job, .num_chips = 1});
  EXPECT_FALSE(remove_remains(*remains).empty());
  remains->life = JobLife::dead;
  EXPECT_EQ(find()->segments.size(), 5U);
}

TEST_F(RemainsTest, ADamagedBoardIsNoReasonToStay) {
  plant_memory();
  Segment::create("weft-" + job + "-board", 1);
  age();
  EXPECT_EQ(life(), JobLife::dead);
  EXPECT_EQ(remove_remains(*find()), std::vector<std::string>{});
}

/// Jobs are found even if another job's lock is a folder or a link. Files that aren't weft's aren't
/// removed.
TEST_F(RemainsTest, ALockThatIsNoFileIsNamedAndKept) {
  plant_memory();
  age();
  const std::string other = unique_job();
  { const JobLock lock = JobLock::take(root, other); }
  const std::string lock = lock_in(root, job);
  for (const bool folder : {true, false}) {
    if (folder) {
      fs::create_directory(lock);
    } else {
      std::ofstream(root + "/notes") << "mine";
      fs::create_symlink(root + "/notes", lock);
    }
    const auto remains = find();
    ASSERT_TRUE(remains);
    EXPECT_EQ(remains->life, JobLife::unknown);
    EXPECT_NE(remains->why.find(lock), std::string::npos) << remains->why;
    EXPECT_EQ(remove_remains(*remains).size(), 5U);
    const auto all = find_remains();
    const auto beside = std::ranges::find(all, other, &JobRemains::job);
    ASSERT_NE(beside, all.end());
    EXPECT_EQ(beside->life, JobLife::dead) << beside->why;
    fs::remove(lock);
  }
  EXPECT_EQ(life(), JobLife::dead);
}

TEST_F(RemainsTest, WhoAsksForALockDoesntTakeIt) {
  EXPECT_FALSE(JobLock::is_held(root, job)) << "there is no such file";
  { const JobLock made = JobLock::take(root, job); }
  EXPECT_FALSE(JobLock::is_held(root, job));
  const JobLock lock = JobLock::try_take(root, job);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(JobLock::is_held(root, job));
  EXPECT_FALSE(JobLock::try_take(root, job));
}

TEST_F(RemainsTest, ALockInAFolderThatIsNotThereIsNoLock) {
  testing::expect_error(Errc::io, {"/nowhere/"}, [&] { JobLock::take(root + "/nowhere", job); });
  testing::expect_error(Errc::io, {"/nowhere/"},
                        [&] { JobLock::try_take(root + "/nowhere", job); });
}

TEST_F(RemainsTest, AFifoOrABrokenLinkForALockKeepsNothing) {
  plant_memory();
  age();
  ASSERT_EQ(::mkfifo(lock_in(root, job).c_str(), 0600), 0);
  EXPECT_EQ(life(), JobLife::dead);
  fs::remove(lock_in(root, job));
  fs::create_symlink("/nowhere/at/all", lock_in(root, job));
  EXPECT_EQ(life(), JobLife::dead);
  EXPECT_EQ(remove_remains(*find()), std::vector<std::string>{});
  EXPECT_TRUE(fs::is_empty(root));
}

TEST_F(RemainsTest, NamesThatAreNoJobsAreLeftAlone) {
  const std::vector<std::string> names{"weft-" + job.substr(1) + "-control", "weft-" + job,
                                       "weft-" + job + "x-control", "welt-" + job + "-control"};
  for (const std::string& name : names) Segment::create(name, 4096);
  std::ofstream(root + "/notes.lock") << "mine";
  age();
  EXPECT_FALSE(find());
  EXPECT_TRUE(fs::exists(root + "/notes.lock"));
  for (const std::string& name : names) EXPECT_TRUE(Segment::remove(name));
}

TEST_F(RemainsTest, WhatIsOfAnotherUserIsNotSeen) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  plant_memory();
  age();
  for (const std::string& name : Segment::list("weft-" + job)) {
    ASSERT_EQ(::chown(("/dev/shm/" + name).c_str(), 65534, 65534), 0);
  }
  EXPECT_FALSE(find());
  for (const char* part : {"control", "chip-0", "chip-1", "channel-rescue"}) {
    EXPECT_TRUE(Segment::remove("weft-" + job + "-" + part));
  }
}

TEST_F(RemainsTest, ARootThatOthersMayEnterIsNotLookedAt) {
  { const JobLock lock = JobLock::take(root, job); }
  EXPECT_TRUE(find());
  fs::permissions(root, fs::perms(0755));
  EXPECT_FALSE(find());
}

/// The memory of a job that is kept for rescue is removed only after its time, or if the job is
/// named.
TEST_F(RemainsTest, AKeptJobIsNotSweptBeforeItsTime) {
  const auto plant = [&](double keep_s) {
    plant_memory();
    { const JobLock lock = JobLock::take(root, job); }
    make_private_folder(folder_in(root, job));
    const auto card = encode_run_card({.checkpoints = "/saved", .keep_for_rescue_s = keep_s});
    std::ofstream(run_card_in(root, job), std::ios::binary)
        .write(reinterpret_cast<const char*>(card.data()),
               static_cast<std::streamsize>(card.size()));
  };
  plant(1000);
  EXPECT_EQ(life(), JobLife::kept);
  EXPECT_GT(kept_for_s(root, job), 900);
  sweep_dead_jobs(root);
  EXPECT_EQ(life(), JobLife::kept);
  EXPECT_FALSE(remove_remains(*find()).empty());
  // Pretends that the job was found dead long ago.
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder_in(root, job) + "/dead").c_str(), long_ago, 0), 0);
  EXPECT_EQ(kept_for_s(root, job), 0);
  EXPECT_EQ(life(), JobLife::dead);
  sweep_dead_jobs(root);
  EXPECT_FALSE(find());
  plant(1000);
  EXPECT_EQ(life(), JobLife::kept);
  EXPECT_TRUE(remove_remains(*find(), true).empty());
  EXPECT_FALSE(find());
}

}  // namespace
}  // namespace weft::remains_test
