#include "transport/job/job_record.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/child_process.hpp"
#include "transport/blackbox/black_box.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::job_record_test {
namespace {

namespace fs = std::filesystem;

/// A fixture with the id of a job and its run folder. Removes what belongs to them at the end of a
/// test.
class JobRecordTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(run_dir); }
  ~JobRecordTest() override {
    JobMemory::remove(job);
    fs::remove_all(run_dir);
  }

  const std::string job = testing::unique_job();
  const std::string run_dir = ::testing::TempDir() + job;
  const std::string incident = incident_in(run_dir);
  Board board = Board::create({.job = job, .name = "digits", .run_dir = run_dir, .num_chips = 1});
  BlackBoxWriter box = BlackBoxWriter::create({.job = job, .num_workers = 1, .num_chips = 1});
};

TEST_F(JobRecordTest, KeepsTheSegmentsOfAJobThatEndedBadly) {
  const JobMemory memory = JobMemory::create({.job = job, .num_chips = 1});
  board.set_status(JobStatus::failed);
  board.worker(0).error("no data");
  box.chip(0, 0).put(EventKind::step, {.number = 204});
  keep_record(job);
  EXPECT_EQ(Board::open_file(incident + "/board.bin").read(1).last_error, "no data");
  const BlackBox kept = BlackBox::open_file(incident + "/box.bin");
  EXPECT_EQ(kept.events({RingKind::chip, 0}).at(0).number, 204U);
  EXPECT_TRUE(fs::exists(incident + "/control.bin"));
  EXPECT_FALSE(fs::exists(incident + ".tmp"));
  EXPECT_FALSE(fs::exists(run_dir + "/summary.json"));
}

TEST_F(JobRecordTest, KeepsTheLastThreeIncidents) {
  board.set_status(JobStatus::running);  // the trainer is killed in this state
  for (const char* const error : {"first", "second", "third", "fourth"}) {
    board.worker(0).error(error);
    keep_record(job);
  }
  const auto error_in = [](const std::string& folder) {
    return Board::open_file(folder + "/board.bin").read(1).last_error;
  };
  EXPECT_EQ(error_in(incident), "fourth");
  EXPECT_EQ(error_in(incident + "-1"), "third");
  EXPECT_EQ(error_in(incident + "-2"), "second");
  EXPECT_FALSE(fs::exists(incident + "-3"));
}

TEST_F(JobRecordTest, SumsUpAJobThatEndedWell) {
  board.device(0).step(12);
  box.ledger(0).add(box.ledger(0).entry_of(8), {.last_chip = -1, .waited = 0});
  board.set_status(JobStatus::succeeded);
  keep_record(job);
  std::ifstream file(run_dir + "/summary.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("\"weft.summary/1\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"step\": 12"), std::string::npos) << text;
  EXPECT_NE(text.find("\"times_last\": 1"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(incident));
}

TEST_F(JobRecordTest, KeepsTheSegmentsOfAJobThatIsTracedWhole) {
  box.set_level(TraceLevel::full);
  box.chip(0, 0).put(EventKind::step, {.number = 12});
  board.set_status(JobStatus::succeeded);
  keep_record(job);
  EXPECT_TRUE(fs::exists(run_dir + "/summary.json"));
  const BlackBox kept = BlackBox::open_file(incident + "/box.bin");
  EXPECT_EQ(kept.level(), TraceLevel::full);
  EXPECT_EQ(kept.events({RingKind::chip, 0}).at(0).number, 12U);
}

TEST_F(JobRecordTest, LeavesAFolderThatIsGone) {
  fs::remove_all(run_dir);
  keep_record(job);
  EXPECT_FALSE(fs::exists(run_dir));
  keep_record(testing::unique_job());  // a job that doesn't exist
}

}  // namespace
}  // namespace weft::job_record_test
