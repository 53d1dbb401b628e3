#include "inspect/snapshot/snapshot_reader.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "inspect/snapshot/job_end.hpp"
#include "inspect/snapshot/kept_hang.hpp"
#include "inspect/views/job_views.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/job/job_record.hpp"
#include "transport/job/program_list.hpp"

namespace weft::snapshot_reader_test {
namespace {

class SnapshotReaderTest : public ::testing::Test {
 protected:
  ~SnapshotReaderTest() override { JobMemory::remove(job); }
  const std::string job = testing::unique_job();
  Board board = Board::create({.job = job,
                               .name = "made",
                               .run_dir = "/nowhere",
                               .mesh_shape = {2},
                               .axis_names = {"data"},
                               .num_workers = 1,
                               .num_chips = 2,
                               .trainer_pid = ::getpid()});
};

TEST_F(SnapshotReaderTest, HasBoardAndProcesses) {
  board.worker(0).open(ActorKind::worker, 0, -1, ::getpid());
  board.worker(0).step(7);
  const Snapshot snapshot = SnapshotReader::of_job(job).read();
  EXPECT_EQ(snapshot.job, job);
  EXPECT_TRUE(snapshot.live);
  EXPECT_TRUE(snapshot.held);
  EXPECT_EQ(snapshot.step(), 7U);
  ASSERT_NE(snapshot.process({0, ::getpid()}), nullptr);
  EXPECT_FALSE(snapshot.process({0, ::getpid()})->gone());
  EXPECT_FALSE(snapshot.control);
  EXPECT_NE(snapshot.no_control, "");
  EXPECT_EQ(snapshot.mesh()->size(), 2);
}

TEST_F(SnapshotReaderTest, FindsTheControlSegmentByItsName) {
  JobMemory memory =
      JobMemory::create({.job = job, .num_chips = 2, .arena_capacity = std::size_t{1} << 20});
  const Snapshot snapshot = SnapshotReader::of_job(job).read();
  ASSERT_TRUE(snapshot.control) << snapshot.no_control;
  EXPECT_TRUE(snapshot.arenas_named);
}

/// When all workers of a job have joined, the arenas have no names, but the control segment has
/// one.
TEST_F(SnapshotReaderTest, ReadsTheControlSegmentOfAJobWhoseArenasHaveNoNames) {
  JobMemory memory =
      JobMemory::create({.job = job, .num_chips = 2, .arena_capacity = std::size_t{1} << 20});
  memory.remove_arena_names();
  memory.commit_line(1).step.store(9);
  SnapshotReader reader = SnapshotReader::of_job(job);
  const Snapshot snapshot = reader.read();
  ASSERT_TRUE(snapshot.control) << snapshot.no_control;
  EXPECT_FALSE(snapshot.arenas_named);
  EXPECT_EQ(snapshot.control->chips[1].committed, 9U);
  memory.commit_line(1).step.store(10);
  EXPECT_EQ(reader.read().control->chips[1].committed, 10U);
}

/// The state of a job that hung can be read after the job is gone.
TEST(KeptHang, IsReadAsItWasSeen) {
  const testing::TemporaryFolder runs;
  const std::string job = testing::unique_job();
  Snapshot seen;
  {
    const Board board =
        Board::create({.job = job, .run_dir = runs.path(), .num_workers = 1, .num_chips = 2});
    board.worker(0).open(ActorKind::worker, 0, -1, 4711);
    board.worker(0).step(7);
    const JobMemory memory =
        JobMemory::create({.job = job, .num_chips = 2, .arena_capacity = std::size_t{1} << 20});
    memory.commit_line(1).step.store(9);
    seen = SnapshotReader::of_job(job).read();
    seen.processes = {{.pid = 4711, .state = 'T', .wchan = "do_signal_stop"}};
    seen.sights = {
        {.pid = 4711,
         .threads = {
             {.stack = {.tid = 4712, .frames = {{.function = "train", .line = 9}}, .why_not = ""},
              .futex = {.mutex_owner = 4713}}}}};
    EXPECT_FALSE(SnapshotReader::read_hang(runs.path()));
    keep_hang(seen);
    JobMemory::remove(job);
  }
  const std::optional<Snapshot> kept = SnapshotReader::read_hang(runs.path());
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->live);
  EXPECT_TRUE(kept->held);
  EXPECT_EQ(kept->at_ns, seen.at_ns);
  EXPECT_EQ(kept->step(), 7U);
  EXPECT_EQ(kept->control->chips[1].committed, 9U);
  ASSERT_EQ(kept->processes.size(), 1U);
  EXPECT_TRUE(kept->process({0, 4711})->stopped());
  EXPECT_EQ(kept->sight({0, 4711})->threads[0].stack.frames[0].function, "train");
  EXPECT_EQ(kept->sight({0, 4711})->threads[0].futex.mutex_owner, 4713);
  std::ofstream(hang_in(runs.path()) + "/processes.json") << "{}";
  testing::expect_error(Errc::corrupt, {"processes.json"},
                        [&] { SnapshotReader::read_hang(runs.path()); });
  forget_hang(runs.path());
  EXPECT_FALSE(SnapshotReader::read_hang(runs.path()));
}

TEST_F(SnapshotReaderTest, JobsAreFoundByIdAndName) {
  EXPECT_EQ(find_jobs(job), std::vector{job});
  const auto named = find_jobs("made");
  EXPECT_NE(std::ranges::find(named, job), named.end());
  EXPECT_TRUE(find_jobs("no such job").empty());
}

TEST(SnapshotReaderOfFolder, ReadsHowTheJobEnded) {
  const auto folder = std::filesystem::temp_directory_path() / testing::unique_job();
  std::filesystem::create_directory(folder);
  testing::expect_error(Errc::not_found, {"result.json"},
                        [&] { SnapshotReader::of_folder(folder); });
  std::ofstream(folder / "result.json")
      << R"({"job": "ab", "name": "digits", "ended_by": "failure", "num_workers": 3,
             "failures": [], "error": {"code": "peer_lost", "message": "gone", "worker": 1,
             "pid": 5, "signal": 9, "exit_code": 0, "step": 3, "collective": ""}})";
  const Snapshot snapshot = SnapshotReader::of_folder(folder).read();
  EXPECT_FALSE(snapshot.live);
  EXPECT_EQ(snapshot.job, "ab");
  ASSERT_TRUE(snapshot.end && snapshot.end->error);
  EXPECT_EQ(snapshot.end->error->signal, 9);
  std::ofstream(folder / "result.json") << R"({"job": 5})";
  testing::expect_error(Errc::corrupt, {"result.json"},
                        [&] { SnapshotReader::of_folder(folder).read(); });
  std::filesystem::remove_all(folder);
}

/// The trainer was killed, so the folder has no file that says how the job ended.
TEST_F(SnapshotReaderTest, AFolderHasWhatTheMemorySaidWithoutAResult) {
  const testing::TemporaryFolder runs;
  std::filesystem::create_directory(incident_in(runs.path()));
  board.worker(0).open(ActorKind::worker, 0, -1, ::getpid());
  board.worker(0).step(7);
  std::filesystem::copy("/dev/shm/" + Board::segment_name(job),
                        incident_in(runs.path()) + "/board.bin");
  const Snapshot snapshot = SnapshotReader::of_folder(runs.path()).read({.events = true});
  EXPECT_EQ(snapshot.job, job);
  EXPECT_FALSE(snapshot.live);
  EXPECT_FALSE(snapshot.held);
  EXPECT_FALSE(snapshot.end);
  EXPECT_EQ(snapshot.step(), 7U);
  const std::string shown = show_text(snapshot);
  EXPECT_NE(shown.find("dead"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("hung after"), std::string::npos) << shown;
}

/// A reader of a run folder never waits for the writer of a fifo.
TEST(RunFolderFiles, ThatAreFifosAreNamed) {
  const testing::TemporaryFolder run;
  const auto fifo = [&](const std::string& name) {
    std::filesystem::create_directories(run.path() + "/programs");
    std::string path = run.path() + "/" + name;
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  };
  const std::string result = fifo("result.json");
  testing::expect_error(Errc::invalid_argument, {result, "is a fifo"},
                        [&] { (void)read_job_end(run.path()); });
  const std::string list = fifo("programs/list.jsonl");
  testing::expect_error(Errc::invalid_argument, {list, "is a fifo"},
                        [&] { (void)read_program_list(run.path()); });
}

}  // namespace
}  // namespace weft::snapshot_reader_test
