#include "inspect/hosts/raw_answer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "inspect/hosts/merge.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::raw_answer_test {
namespace {

using testing::expect_error;

/// A host of a job on two hosts, each with one worker of two chips.
class RawAnswerTest : public ::testing::Test {
 protected:
  struct Part {
    explicit Part(int host)
        : board(Board::create({.job = job,
                               .name = "made",
                               .run_dir = "/nowhere",
                               .mesh_shape = {4},
                               .axis_names = {"data"},
                               .dcn_shape = {2},
                               .num_workers = 2,
                               .num_chips = 4,
                               .trainer_pid = ::getpid(),
                               .host = host,
                               .num_hosts = 2})),
          box(BlackBoxWriter::create({.job = job, .num_workers = 2, .num_chips = 4})),
          memory(JobMemory::create(
              {.job = job, .num_chips = 2, .arena_capacity = std::size_t{1} << 20})) {
      board.worker(host).open(ActorKind::worker, host, -1, ::getpid());
      board.worker(host).step(static_cast<std::uint64_t>(7 + host));
      for (int chip = 2 * host; chip < 2 * host + 2; ++chip) {
        board.device(chip).open(ActorKind::device, host, chip, ::getpid());
        box.chip(chip, host).put(EventKind::step, {.number = 3});
        memory.commit_line(chip % 2).step.store(static_cast<std::uint64_t>(chip));
      }
    }
    ~Part() { JobMemory::remove(job); }
    const std::string job = testing::unique_job();
    Board board;
    BlackBoxWriter box;
    JobMemory memory;
  };
  static Snapshot answer_of(const Part& part, const RawRequest& request = kAll) {
    std::string bytes = raw_answer(part.job, request);
    std::optional<RawAnswer> answer = take_raw_answer(bytes, request.parts);
    EXPECT_TRUE(answer);
    EXPECT_EQ(bytes, "");
    return std::move(answer->job);
  }
  inline static const RawRequest kAll{.parts = {.events = true}};
};

TEST_F(RawAnswerTest, TellsWhatTheHostItselfSees) {
  const Part part(1);
  const Snapshot here = SnapshotReader::of_job(part.job).read(kAll.parts);
  const Snapshot there = answer_of(part);
  EXPECT_EQ(there.job, here.job);
  EXPECT_TRUE(there.held);
  EXPECT_EQ(there.step(), 8U);
  EXPECT_EQ(there.header.host, 1);
  ASSERT_NE(there.process(HostPid{1, ::getpid()}), nullptr);
  EXPECT_FALSE(there.process(HostPid{1, ::getpid()})->gone());
  EXPECT_EQ(there.process(HostPid{0, ::getpid()}), nullptr);
  ASSERT_NE(there.chip_ring(3), nullptr);
  EXPECT_EQ(there.chip_ring(3)->events.size(), 1U);
  ASSERT_TRUE(there.control);
  EXPECT_FALSE(there.control->knows(1));
  EXPECT_TRUE(there.control->knows(3));
  EXPECT_EQ(there.control->chips[3].committed, 3U);
}

TEST_F(RawAnswerTest, BecomesAPartOfTheJob) {
  const Part first(0);
  const Part second(1);
  Snapshot job = SnapshotReader::of_job(first.job).read(kAll.parts);
  merge_host(job, answer_of(second));
  EXPECT_EQ(job.worker(0)->step, 7U);
  EXPECT_EQ(job.worker(1)->step, 8U);
  EXPECT_NE(job.process(*job.worker(0)), job.process(*job.worker(1)))
      << "two hosts may have the same pid";
  for (int chip = 0; chip < 4; ++chip) {
    EXPECT_TRUE(job.control->knows(chip));
    EXPECT_NE(job.chip_ring(chip), nullptr);
  }
  EXPECT_EQ(job.control->common_step(), 0U);
}

/// The memory of a lost host may be readable, and its rows say nothing of the loss.
TEST_F(RawAnswerTest, DoesNotHideThatItsHostIsLost) {
  const Part first(0);
  const Part second(1);
  Snapshot job = SnapshotReader::of_job(first.job).read(kAll.parts);
  Snapshot lost = answer_of(second);
  ActorRow row = *lost.worker(1);
  row.state = ActorState::host_lost;
  row.last_error = "host 1 is lost: it has been silent";
  std::erase_if(job.rows, [&](const ActorRow& each) { return each.index == row.index; });
  job.rows.push_back(row);
  std::ranges::sort(job.rows, {}, &ActorRow::index);
  merge_host(job, std::move(lost));
  EXPECT_EQ(job.worker(1)->state, ActorState::host_lost);
  EXPECT_EQ(job.worker(1)->last_error, row.last_error);
}

TEST_F(RawAnswerTest, IsTakenOnlyWhenItIsComplete) {
  const Part part(0);
  const RawRequest request{};
  const std::string whole = raw_answer(part.job, request);
  std::string bytes;
  for (std::size_t i = 0; i + 1 < whole.size(); i += 1 + whole.size() / 50) {
    bytes = whole.substr(0, i);
    EXPECT_FALSE(take_raw_answer(bytes, request.parts)) << i;
  }
  bytes = whole + whole;
  EXPECT_TRUE(take_raw_answer(bytes, request.parts));
  EXPECT_EQ(bytes, whole);
}

TEST_F(RawAnswerTest, TellsAnError) {
  std::string bytes = raw_answer(testing::unique_job(), {});
  expect_error(Errc::unavailable, {"board"}, [&] { take_raw_answer(bytes, {}); });
}

TEST(RawAnswer, RefusesWhatNoAnswerCanHave) {
  const auto refuse = [](std::string bytes, std::initializer_list<std::string_view> words,
                         Errc code = Errc::corrupt) {
    expect_error(code, words, [&] { take_raw_answer(bytes, {}); });
  };
  const auto with_file = [](const std::string& file) {
    return R"({"schema":"weft.raw/1","held":true,"boottime_ns":1,"monotonic_ns":1,"files":[)" +
           file + "]}\n";
  };
  refuse("node7\n", {"isn't one of weft inspect --raw"});
  refuse("[]\n", {"isn't one of weft inspect --raw"});
  refuse(std::string(5 << 20, 'x'), {"no head"});
  refuse(R"({"schema":"weft.raw/9"})"
         "\n",
         {"weft.raw/9", "same version"}, Errc::version);
  refuse(with_file(R"({"name":"../x","bytes":1,"pieces":[]})"), {"../x", "known name"});
  refuse(with_file(R"({"name":"board.bin","bytes":99999999999,"pieces":[]})"), {"99999999999"});
  refuse(with_file(R"({"name":"board.bin","bytes":8,"pieces":[[4,8]]})"),
         {"piece of 8 bytes at 4"});
  refuse(with_file(R"({"name":"board.bin","bytes":8,"pieces":[[4,2],[0,2]]})"), {"in order"});
  refuse(with_file(R"({"name":"board.bin","bytes":8,"pieces":[[-1,2]]})"), {"piece"});
  refuse(with_file(R"({"name":"board.bin","bytes":8,"pieces":[]})"), {"header alone needs"});
}

TEST(RawRequest, IsParsedAsItWasWritten) {
  const RawRequest request{.parts = {.control = false, .waits = true}, .sights = {4711, 4712}};
  const RawRequest parsed = parse_raw_request(to_line(request));
  EXPECT_EQ(parsed.sights, request.sights);
  EXPECT_FALSE(parsed.parts.control);
  EXPECT_TRUE(parsed.parts.waits);
  expect_error(Errc::corrupt, {"request"}, [] { parse_raw_request("{}"); });
}

}  // namespace
}  // namespace weft::raw_answer_test
