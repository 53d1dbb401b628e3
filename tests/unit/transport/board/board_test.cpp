#include "transport/board/board.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "transport/board/board_format.hpp"
#include "transport/channel/channel.hpp"

namespace weft::board_test {
namespace {

using board_format::BoardHeaderV1;
using board_format::BoardRowV2;
using testing::ChildProcess;
using testing::expect_error;
using testing::unique_job;

BoardHeader header_of(std::string job) {
  return {.job = std::move(job),
          .name = "digits",
          .run_dir = "/home/me/weft_runs/digits",
          .mesh_shape = {2, 1},
          .axis_names = {"data", "model"},
          .num_workers = 2,
          .num_chips = 2,
          .trainer_pid = 4711,
          .started_unix_ns = 1'700'000'000'000'000'000};
}

/// A fixture with the id of a job. The job's board is removed at the end of a test.
class BoardTest : public ::testing::Test {
 protected:
  ~BoardTest() override { Segment::remove(Board::segment_name(job)); }

  /// Opens the segment of the board.
  Segment bytes() const { return Segment::open(Board::segment_name(job), false, 1); }
  BoardHeaderV1& format(const Segment& segment) const {
    return *reinterpret_cast<BoardHeaderV1*>(segment.data());
  }
  BoardRowV2& row(const Segment& segment, std::size_t index) const {
    return reinterpret_cast<BoardRowV2*>(segment.data() + sizeof(BoardHeaderV1))[index];
  }

  std::string job = unique_job();
};

TEST_F(BoardTest, IsHeldAsLongAsWhoMadeItHasIt) {
  std::optional<Board> made = Board::create(header_of(job));
  const Board board = Board::open(job, true);
  EXPECT_TRUE(board.is_held());
  made.reset();
  EXPECT_FALSE(board.is_held());
}

/// Rows are shown as JSON, which must be UTF-8.
TEST_F(BoardTest, ShowsWhatIsNotUtf8InARowAsText) {
  const Board board = Board::create(header_of(job));
  board.worker(0).error(
      "a\xff"
      "b");
  board.worker(0).message_begun("\xc3(");
  board.device(0).enter_collective(1, "all_reduce '\x9b'");
  EXPECT_EQ(board.read(1).last_error, "a\\xffb");
  EXPECT_EQ(board.read(1).last_message, "\\xc3(");
  EXPECT_EQ(board.read(3).collective_name, "all_reduce '\\x9b'");
}

TEST_F(BoardTest, KeepsTheHostsOfTheMesh) {
  {
    const Board one = Board::create(header_of(job));
    EXPECT_TRUE(Board::open(job, true).header().dcn_shape.empty());
  }
  Segment::remove(Board::segment_name(job));
  BoardHeader header = header_of(job);
  header.dcn_shape = {2, 1};
  const Board board = Board::create(header);
  EXPECT_EQ(Board::open(job, true).header().dcn_shape, header.dcn_shape);
  header.dcn_shape = {2};
  expect_error(Errc::invalid_argument, {"hosts are given for 1 axes", "the mesh has 2"},
               [&] { Board::create(header); });
}

TEST_F(BoardTest, SaysWhoseProcessesWriteToIt) {
  BoardHeader header = header_of(job);
  header.num_hosts = 2;
  header.host = 1;
  const Board made = Board::create(header);
  const BoardHeader read = Board::open(job, true).header();
  EXPECT_EQ(read.host, 1);
  EXPECT_EQ(read.num_hosts, 2);
  EXPECT_EQ(read.host_of(0), 0);
  EXPECT_EQ(read.host_of(1), 1);
  EXPECT_EQ(read.host_of(-1), 0) << "the trainer";
  format(bytes()).host = 2;
  expect_error(Errc::corrupt, {"2 workers on 2 hosts", "host 2"}, [&] { Board::open(job, true); });
  format(bytes()).host = 1;
  format(bytes()).num_hosts = 3;  // 2 workers can't be divided
  expect_error(Errc::corrupt, {"2 workers on 3 hosts"}, [&] { Board::open(job, true); });
  header.host = 2;
  expect_error(Errc::invalid_argument, {"host 2 of 2", "from 0 to 1"},
               [&] { Board::anonymous(header); });
}

TEST_F(BoardTest, ShowsItsHeaderToAnotherProcess) {
  Board::create(header_of(job));
  const Board board = Board::open(job, true);
  const BoardHeader expected = header_of(job);
  EXPECT_EQ(board.header().job, job);
  EXPECT_EQ(board.header().name, expected.name);
  EXPECT_EQ(board.header().run_dir, expected.run_dir);
  EXPECT_EQ(board.header().mesh_shape, expected.mesh_shape);
  EXPECT_EQ(board.header().axis_names, expected.axis_names);
  EXPECT_EQ(board.header().trainer_pid, expected.trainer_pid);
  EXPECT_EQ(board.header().started_unix_ns, expected.started_unix_ns);
  EXPECT_EQ(board.num_rows(), 5);
  EXPECT_EQ(board.status(), JobStatus::starting);
}

TEST_F(BoardTest, HasARowForWhoHasntCome) {
  const Board board = Board::anonymous(header_of(job));
  const std::vector<ActorRow> rows = board.readable_rows();
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].kind, ActorKind::trainer);
  EXPECT_EQ(rows[2].kind, ActorKind::worker);
  EXPECT_EQ(rows[2].worker, 1);
  EXPECT_EQ(rows[4].kind, ActorKind::device);
  EXPECT_EQ(rows[4].chip, 1);
  for (const ActorRow& row : rows) {
    EXPECT_EQ(row.state, ActorState::absent);
    EXPECT_EQ(row.waiting_for, -1);
    EXPECT_EQ(row.updated_ns, 0);
    EXPECT_FALSE(row.torn);
  }
}

TEST_F(BoardTest, ShowsWhatAnotherProcessWrote) {
  const Board board = Board::create(header_of(job));
  ChildProcess child([this] {
    Board opened = Board::open(job, false);
    opened.set_status(JobStatus::running);
    const BoardWriter device = opened.device(1);
    device.open(ActorKind::device, 1, 1, getpid());
    device.step(640);
    for (int i = 0; i < 4; ++i) device.message_came();
    device.message_begun("run_step");
    device.source("digits.cpp:84");
    device.thread(4712);
    device.error("no memory");
    device.enter_collective(812, "all_reduce 'fc1.weight.grad'");
    device.waiting_for(0);
  });
  const int pid = child.pid();
  ASSERT_EQ(child.join(), "");
  EXPECT_EQ(board.status(), JobStatus::running);
  const ActorRow row = board.read(4);
  EXPECT_EQ(row.index, 4);
  EXPECT_EQ(row.kind, ActorKind::device);
  EXPECT_EQ(row.state, ActorState::waiting);
  EXPECT_EQ(row.worker, 1);
  EXPECT_EQ(row.chip, 1);
  EXPECT_EQ(row.pid, pid);
  EXPECT_EQ(row.step, 640U);
  EXPECT_EQ(row.last_message, "run_step");
  EXPECT_EQ(row.mailbox, 3U);
  EXPECT_EQ(row.source, "digits.cpp:84");
  EXPECT_EQ(row.tid, 4712);
  EXPECT_EQ(row.last_error, "no memory");
  EXPECT_EQ(row.collective, 812U);
  EXPECT_EQ(row.collective_name, "all_reduce 'fc1.weight.grad'");
  EXPECT_TRUE(row.in_collective);
  EXPECT_EQ(row.waiting_for, 0);
  EXPECT_GT(row.updated_ns, 0);
}

TEST_F(BoardTest, RunsAgainAfterAWait) {
  const Board board = Board::anonymous(header_of(job));
  const BoardWriter device = board.device(0);
  device.enter_collective(1, "barrier");
  device.waiting_for(1);
  device.leave_collective();
  const ActorRow row = board.read(3);
  EXPECT_EQ(row.state, ActorState::running);
  EXPECT_EQ(row.waiting_for, -1);
  EXPECT_FALSE(row.in_collective);
  EXPECT_EQ(row.collective, 1U);
}

TEST_F(BoardTest, LeavesTheStateOfWhoDidntWait) {
  const Board board = Board::anonymous(header_of(job));
  board.device(0).state(ActorState::compiling);
  board.device(0).enter_collective(1, "barrier");
  board.device(0).leave_collective();
  EXPECT_EQ(board.read(3).state, ActorState::compiling);
}

TEST_F(BoardTest, CutsTextBetweenCharacters) {
  const Board board = Board::anonymous(header_of(job));
  board.worker(0).message_begun(std::string(30, 'a') + "é");  // the é would go across byte 32
  EXPECT_EQ(board.read(1).last_message, std::string(30, 'a'));
  board.worker(0).error(std::string(300, 'b'));
  EXPECT_EQ(board.read(1).last_error, std::string(255, 'b'));
}

TEST_F(BoardTest, MarksARowWhoseWriterDiedInAWrite) {
  const Board board = Board::create(header_of(job));
  board.worker(1).step(7);
  const Segment segment = bytes();
  row(segment, 2).sequence |= 1U;
  const ActorRow torn = board.read(2);
  EXPECT_TRUE(torn.torn);
  EXPECT_EQ(torn.step, 7U);
  board.worker(1).state(ActorState::lost);
  EXPECT_FALSE(board.read(2).torn);
  EXPECT_EQ(board.read(2).state, ActorState::lost);
}

TEST_F(BoardTest, NeverShowsHalfAWrite) {
  const Board board = Board::anonymous(header_of(job));
  const auto write = [&](int i) {
    board.worker(0).enter_collective(static_cast<std::uint64_t>(i % 26),
                                     std::string(90, static_cast<char>('a' + i % 26)));
    board.worker(0).message_begun(std::string(30, static_cast<char>('a' + i % 26)));
  };
  write(0);
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    for (int i = 1; i < 20000; ++i) write(i);
    done = true;
  });
  while (!done) {
    const ActorRow row = board.read(1);
    if (row.torn) continue;
    ASSERT_EQ(row.collective_name, std::string(90, static_cast<char>('a' + row.collective)));
    const auto last = static_cast<char>('a' + (row.messages_begun - 1) % 26);
    ASSERT_EQ(row.last_message, std::string(30, last));
  }
}

TEST_F(BoardTest, CountsWhatWaitsInAMailbox) {
  const Board board = Board::anonymous(header_of(job));
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i) {
    senders.emplace_back([worker = board.worker(0)] {
      for (int m = 0; m < 25; ++m) worker.message_came();
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (int i = 0; i < 3; ++i) {
    board.worker(0).message_begun("step");
    board.worker(0).message_done();
  }
  board.worker(0).message_begun();
  const ActorRow row = board.read(1);
  EXPECT_EQ(row.messages_came, 100U);
  EXPECT_EQ(row.messages_begun, 4U);
  EXPECT_EQ(row.messages_done, 3U);
  EXPECT_EQ(row.mailbox, 96U);
  EXPECT_EQ(row.last_message, "step");
}

TEST_F(BoardTest, TellsSinceWhenAStateIs) {
  const Board board = Board::anonymous(header_of(job));
  board.worker(0).open(ActorKind::worker, 0, -1, 1);
  EXPECT_EQ(board.read(1).tid, ::gettid());
  const std::int64_t began = board.read(1).since_ns;
  EXPECT_GT(began, 0);
  board.worker(0).state(ActorState::starting);
  board.worker(0).step(1);
  EXPECT_EQ(board.read(1).since_ns, began);
  board.worker(0).state(ActorState::user_code);
  EXPECT_GT(board.read(1).since_ns, began);
  EXPECT_EQ(board.worker(0).state(), ActorState::user_code);
}

TEST_F(BoardTest, AReportIsNoMoveAndAStepIs) {
  const Board board = Board::anonymous(header_of(job));
  const BoardWriter loop = board.worker(0);
  loop.open(ActorKind::worker, 0, -1, 1);
  loop.state(ActorState::user_code);
  const std::int64_t moved = board.read(1).moved_ns;
  loop.state(ActorState::reporting);
  loop.state(ActorState::user_code);
  EXPECT_EQ(board.read(1).moved_ns, moved);
  EXPECT_GT(board.read(1).since_ns, moved);
  loop.step(1);
  EXPECT_GT(board.read(1).moved_ns, moved);
}

TEST_F(BoardTest, ShowsWhatTheTrainerIsInsideOf) {
  const Board board = Board::anonymous(header_of(job));
  board.trainer().open(ActorKind::trainer, -1, -1, 1);
  board.trainer().enter_inside("Plotter::on_report", -1, 7, 5);
  EXPECT_EQ(board.read(0).inside, "Plotter::on_report");
  EXPECT_EQ(board.read(0).inside_tid, 7);
  EXPECT_EQ(board.read(0).inside_since_ns, 5);
  board.trainer().leave_inside();
  EXPECT_EQ(board.read(0).inside, "");
  EXPECT_EQ(board.read(0).inside_since_ns, 0);
}

TEST_F(BoardTest, IsReadFromAFile) {
  const std::string path = (testing::golden_path("board-v2.bin")).string();
  EXPECT_EQ(Board::open_file(path).read(2).last_error, "can't find the data");
  expect_error(Errc::not_found, {"none.bin"}, [] { Board::open_file("/tmp/none.bin"); });
}

TEST_F(BoardTest, CanBeWrittenNowhere) {
  const BoardWriter writer;
  writer.open(ActorKind::worker, 0, -1, 1);
  writer.enter_collective(1, "barrier");
  writer.waiting_for(1);
  writer.leave_collective();
}

TEST_F(BoardTest, RefusesToBeWrittenThroughAReadOnlyMapping) {
  Board::create(header_of(job));
  Board board = Board::open(job, true);
  expect_error(Errc::invalid_argument, {"read-only"}, [&] { board.set_status(JobStatus::failed); });
  expect_error(Errc::invalid_argument, {"read-only"}, [&] { board.trainer(); });
}

TEST_F(BoardTest, RefusesTextThatItWouldHaveToCut) {
  BoardHeader header = header_of(job);
  header.name.assign(255, 'n');
  header.run_dir.assign(1023, 'r');
  EXPECT_EQ(Board::anonymous(header).header().run_dir, header.run_dir);
  header.run_dir += 'r';
  expect_error(Errc::invalid_argument, {job, "run_dir", "1024", "1023", "run.storage_path"},
               [&] { Board::create(header); });
  header.run_dir = "/";
  header.name += 'n';
  expect_error(Errc::invalid_argument, {job, "name", "256", "255", "run.name"},
               [&] { Board::anonymous(header); });
  expect_error(Errc::not_found, {job}, [&] { Board::open(job, true); });
}

TEST_F(BoardTest, RefusesRowsThatItHasnt) {
  const Board board = Board::anonymous(header_of(job));
  expect_error(Errc::invalid_argument, {"chip = 2, but there are 2 chips"},
               [&] { board.device(2); });
  expect_error(Errc::invalid_argument, {"worker = -1, but there are 2 workers"},
               [&] { board.worker(-1); });
  expect_error(Errc::invalid_argument, {"row = 5, but there are 5 rows"}, [&] { board.read(5); });
}

TEST_F(BoardTest, ListsTheJobsThatHaveOne) {
  Board::create(header_of(job));
  const std::vector<std::string> jobs = Board::jobs();
  EXPECT_NE(std::find(jobs.begin(), jobs.end(), job), jobs.end());
}

TEST_F(BoardTest, DoesntTakeAChannelForAJob) {
  const Channel channel = Channel::create({.job = job, .name = "board", .slot_bytes = 64});
  for (const std::string& name : Board::jobs()) EXPECT_EQ(name.find(job), std::string::npos);
  EXPECT_EQ(JobMemory::remove(job), 1);
}

TEST_F(BoardTest, ThrowsNotFoundForAnUnknownJob) {
  expect_error(Errc::not_found, {job}, [&] { Board::open(job, true); });
}

TEST_F(BoardTest, ThrowsNotFoundWhileItIsBeingMade) {
  Board::create(header_of(job));
  format(bytes()).magic = 0;
  expect_error(Errc::not_found, {"still being made"}, [&] { Board::open(job, true); });
}

TEST_F(BoardTest, NamesTheVersionThatItCantRead) {
  Board::create(header_of(job));
  format(bytes()).version = 1;
  expect_error(Errc::version, {"version 1", "version 2", "use the weft"},
               [&] { Board::open(job, true); });
}

TEST_F(BoardTest, RefusesSizesThatDontFitItsMapping) {
  Board::create(header_of(job));
  const Segment segment = bytes();
  const BoardHeaderV1 good = format(segment);
  const auto expect_corrupt = [&](auto&& damage) {
    format(segment) = good;
    damage(format(segment));
    expect_error(Errc::corrupt, {job}, [&] { Board::open(job, true); });
  };
  expect_corrupt([](BoardHeaderV1& header) { header.magic ^= 1U; });
  expect_corrupt([](BoardHeaderV1& header) { header.num_chips = 100; });
  expect_corrupt([](BoardHeaderV1& header) { header.num_chips = -1; });
  expect_corrupt([](BoardHeaderV1& header) { header.num_workers = 0x7fffffff; });
  expect_corrupt([](BoardHeaderV1& header) { header.num_axes = 17; });
  expect_corrupt([](BoardHeaderV1& header) { header.row_bytes = 256; });
  expect_corrupt([](BoardHeaderV1& header) { header.header_bytes = 512; });
}

TEST_F(BoardTest, RefusesValuesThatNoWriterWrites) {
  const Board board = Board::create(header_of(job));
  const Segment segment = bytes();
  row(segment, 1).state = 200;
  expect_error(Errc::corrupt, {"row 1"}, [&] { board.read(1); });
  format(segment).status = 9;
  expect_error(Errc::corrupt, {"status"}, [&] { board.status(); });
}

TEST_F(BoardTest, RefusesARowThatSaysItIsAnother) {
  const Board board = Board::create(header_of(job));
  const Segment segment = bytes();
  const int first_device = 1 + board.header().num_workers;
  const auto expect_corrupt = [&](int index, auto&& damage) {
    const BoardRowV2 good = row(segment, index);
    damage(row(segment, index));
    expect_error(Errc::corrupt, {job, fmt::format("row {}", index)}, [&] { board.read(index); });
    std::vector<std::string> refused;
    EXPECT_EQ(board.readable_rows(&refused).size(), static_cast<std::size_t>(board.num_rows() - 1));
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_NE(refused[0].find(fmt::format("row {}", index)), std::string::npos) << refused[0];
    row(segment, index) = good;
    board.read(index);
  };
  expect_corrupt(0, [](BoardRowV2& row) { row.kind = 1; });
  expect_corrupt(0, [](BoardRowV2& row) { row.worker = 0; });
  expect_corrupt(1, [](BoardRowV2& row) { row.kind = 2; });
  expect_corrupt(1, [](BoardRowV2& row) { row.worker = 1; });
  expect_corrupt(1, [](BoardRowV2& row) { row.chip = 0; });
  expect_corrupt(first_device, [](BoardRowV2& row) { row.kind = 77; });
  expect_corrupt(first_device, [](BoardRowV2& row) { row.chip = 1; });
  expect_corrupt(first_device, [](BoardRowV2& row) { row.chip = 0x7fffffff; });
  expect_corrupt(first_device, [](BoardRowV2& row) { row.worker = 0x7fffffff; });
  expect_corrupt(first_device, [](BoardRowV2& row) { row.worker = -2; });
  expect_corrupt(first_device, [](BoardRowV2& row) { row.waiting_for = 0x7fffffff; });
  expect_corrupt(first_device, [](BoardRowV2& row) { row.waiting_for = -2; });
}

TEST_F(BoardTest, HasTheBytesOfVersion2) {
  Board board = Board::create(header_of(job));
  board.set_status(JobStatus::running);
  board.trainer().open(ActorKind::trainer, -1, -1, 4711);
  board.trainer().state(ActorState::idle);
  board.worker(1).open(ActorKind::worker, 1, -1, 4713);
  board.worker(1).message_came();
  board.worker(1).message_came();
  board.worker(1).message_begun("join");
  board.worker(1).source("digits.cpp:84");
  board.worker(1).error("can't find the data");
  board.device(0).open(ActorKind::device, 0, 0, 4712);
  board.device(0).step(204);
  board.device(0).enter_collective(812, "all_reduce 'fc1.weight.grad'");
  board.device(0).waiting_for(1);

  const Segment segment = bytes();
  std::string copy(reinterpret_cast<const char*>(segment.data()), segment.capacity());
  auto* rows = reinterpret_cast<BoardRowV2*>(copy.data() + sizeof(BoardHeaderV1));
  for (int i = 0; i < board.num_rows(); ++i) {
    if (rows[i].updated_ns == 0) continue;
    rows[i].updated_ns = rows[i].since_ns = 1;
    rows[i].moved_ns = 0;
    rows[i].pid_namespace = 0;
    rows[i].tid = 4711;
  }
  std::memcpy(reinterpret_cast<BoardHeaderV1*>(copy.data())->job,
              "0123456789abcdef0123456789abcdef", 32);
  testing::expect_golden("board-v2.bin", copy);
}

TEST_F(BoardTest, ReadsTheBytesOfVersion2) {
  const std::string golden = testing::read_golden("board-v2.bin");
  Segment segment = Segment::create(Board::segment_name(job), golden.size());
  segment.reserve(0, golden.size());
  std::memcpy(segment.data(), golden.data(), golden.size());
  const Board board = Board::open(job, true);
  EXPECT_EQ(board.header().job, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(board.header().axis_names, (std::vector<std::string>{"data", "model"}));
  EXPECT_EQ(board.status(), JobStatus::running);
  EXPECT_EQ(board.read(0).state, ActorState::idle);
  EXPECT_EQ(board.read(1).state, ActorState::absent);
  EXPECT_EQ(board.read(2).last_error, "can't find the data");
  EXPECT_EQ(board.read(2).source, "digits.cpp:84");
  EXPECT_EQ(board.read(2).last_message, "join");
  EXPECT_EQ(board.read(2).mailbox, 1U);
  EXPECT_EQ(board.read(2).tid, 4711);
  EXPECT_EQ(board.read(3).collective_name, "all_reduce 'fc1.weight.grad'");
  EXPECT_EQ(board.read(3).waiting_for, 1);
  EXPECT_EQ(board.read(3).step, 204U);
}

TEST(Board, CopiesRowsOfAnotherHost) {
  const BoardHeader header{.job = testing::unique_job(), .num_workers = 2, .num_chips = 2};
  const Board there = Board::anonymous(header);
  const Board here = Board::anonymous(header);
  there.worker(1).open(ActorKind::worker, 1, -1, 77);
  there.worker(1).step(5);
  there.worker(1).source("digits.cpp:84");
  there.worker(1).message_came();
  here.copy_row(2, there.bytes_of_row(2), 1000);
  const ActorRow told = there.read(2);
  const ActorRow copy = here.read(2);
  EXPECT_EQ(copy.step, 5U);
  EXPECT_EQ(copy.pid, 77);
  EXPECT_EQ(copy.source, "digits.cpp:84");
  EXPECT_EQ(copy.messages_came, 1U);
  EXPECT_EQ(copy.updated_ns, told.updated_ns + 1000);
  EXPECT_FALSE(copy.torn);
}

TEST(Board, RefusesToCopyARowThatBelongsElsewhere) {
  const BoardHeader header{.job = testing::unique_job(), .num_workers = 2, .num_chips = 2};
  const Board there = Board::anonymous(header);
  const Board here = Board::anonymous(header);
  expect_error(Errc::corrupt, {"row 1 is of kind 1, worker 1"},
               [&] { here.copy_row(1, there.bytes_of_row(2), 0); });
  expect_error(Errc::corrupt, {"a row of another host has 3 bytes"},
               [&] { here.copy_row(1, "abc", 0); });
  EXPECT_EQ(here.read(1).worker, 0) << "nothing was copied";
}

}  // namespace
}  // namespace weft::board_test
