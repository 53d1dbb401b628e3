#include "actors/supervision/checkpoint_tally.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tests/support/action_text.hpp"

namespace weft::checkpoint_tally_test {
namespace {

Report report(int worker, std::uint64_t step) {
  return {.worker = worker, .step = step, .checkpoint = "at " + std::to_string(step)};
}

TEST(CheckpointTally, CountsACheckpointOnceAllWorkersHaveReportedIt) {
  CheckpointTally tally(2);
  tally.reported(report(0, 8));
  tally.reported(report(0, 8));
  tally.reported({.worker = 1, .step = 8});
  EXPECT_FALSE(tally.last());
  tally.reported(report(1, 8));
  ASSERT_TRUE(tally.last());
  EXPECT_EQ(tally.last()->step, 8U);
  EXPECT_EQ(tally.last()->path, "at 8");
  tally.reported(report(1, 16));
  EXPECT_EQ(tally.last()->step, 8U);
}

TEST(CheckpointTally, KeepsTheLatest) {
  CheckpointTally tally(2);
  tally.reported(report(0, 8));
  tally.reported(report(0, 16));
  tally.reported(report(1, 16));
  tally.reported(report(1, 8));
  EXPECT_EQ(tally.last()->step, 16U);
}

TEST(CheckpointTally, IsBoundedWhereOneWorkerAloneReports) {
  CheckpointTally tally(2);
  for (std::uint64_t step = 1; step <= 5000; ++step) tally.reported(report(0, step));
  tally.reported(report(1, 4000));
  EXPECT_FALSE(tally.last()) << "it was dropped long ago";
  tally.reported(report(1, 4999));
  ASSERT_TRUE(tally.last());
  EXPECT_EQ(tally.last()->step, 4999U);
}

TEST(CheckpointTally, ForgetsWhatIsMadeAgain) {
  CheckpointTally tally(2);
  tally.reported(report(0, 16));
  tally.begin_generation(2, 8);
  tally.reported(report(1, 16));
  EXPECT_FALSE(tally.last());
  tally.reported(report(0, 16));
  EXPECT_EQ(tally.last()->step, 16U);
}

PartWritten part(int worker, std::uint64_t save, std::uint64_t generation = 1) {
  return {.worker = worker, .generation = generation, .step = save, .save = save};
}

SaveEnded ended(std::uint64_t save, std::uint64_t generation = 1, std::uint8_t error = 0) {
  return {.generation = generation, .step = save, .save = save, .path = "saved", .error = error};
}

std::vector<std::string> words(const Actions& actions) {
  std::vector<std::string> words;
  for (const Action& action : actions) words.push_back(testing::words(action));
  return words;
}
using Words = std::vector<std::string>;

TEST(CheckpointTally, JoinsThePartsOnceAllAreWritten) {
  CheckpointTally tally(2);
  EXPECT_EQ(words(tally.part_written(part(1, 5))), Words());
  EXPECT_EQ(words(tally.part_written(part(1, 5))), Words()) << "one worker counts once";
  EXPECT_EQ(words(tally.part_written(part(0, 5))), Words{"join parts 5"});
  EXPECT_FALSE(tally.last()) << "not before it is there";
  EXPECT_EQ(words(tally.save_ended(ended(5))), Words{"saved 5 "});
  ASSERT_TRUE(tally.last());
  EXPECT_EQ(tally.last()->step, 5U);
  EXPECT_TRUE(tally.last()->is_saved);
}

PartWritten failed(int worker, std::uint64_t save, const char* why) {
  PartWritten written = part(worker, save);
  written.error = static_cast<std::uint8_t>(Errc::no_space);
  written.message = why;
  return written;
}

TEST(CheckpointTally, ASaveThatFailedEndsWhenNobodyWritesToItAnyMore) {
  CheckpointTally tally(3);
  EXPECT_EQ(words(tally.part_written(part(0, 5))), Words());
  EXPECT_EQ(words(tally.part_written(failed(2, 5, "disk full"))), Words{"drop parts 5"});
  EXPECT_EQ(words(tally.part_written(failed(2, 5, "again"))), Words());
  EXPECT_EQ(words(tally.part_written(failed(1, 5, "dropped"))),
            Words{"saved 5 worker 2: disk full"});
  EXPECT_EQ(words(tally.part_written(failed(1, 5, "late"))), Words());
  EXPECT_EQ(words(tally.part_written(part(0, 9))), Words()) << "the next save counts from 0";
  EXPECT_EQ(words(tally.part_written(part(1, 9))), Words());
  EXPECT_EQ(words(tally.part_written(part(2, 9))), Words{"join parts 9"});
  EXPECT_EQ(words(tally.part_written(part(2, 5))), Words()) << "late";
  EXPECT_EQ(words(tally.save_ended(ended(9, 1, 1))), Words{"saved 9 "});
  EXPECT_FALSE(tally.last()) << "it failed";
}

TEST(CheckpointTally, ASaveFailsThoughTheLastPartIsWritten) {
  CheckpointTally tally(2);
  EXPECT_EQ(words(tally.part_written(failed(0, 5, "disk full"))), Words{"drop parts 5"});
  EXPECT_EQ(words(tally.part_written(part(1, 5))), Words{"saved 5 worker 0: disk full"});
  EXPECT_EQ(words(tally.save_ended(ended(5, 1, 1))), Words()) << "told once";
}

/// All loops throw the message of the save, so each of them seems to have failed.
TEST(CheckpointTally, KnowsWhoseFailureEndedALoop) {
  CheckpointTally tally(3);
  EXPECT_FALSE(tally.culprit("worker 2: disk full")) << "nothing has been saved";
  tally.part_written(failed(2, 5, "disk full"));
  EXPECT_EQ(tally.culprit("save() at train.cpp:9: worker 2: disk full"), 2);
  EXPECT_FALSE(tally.culprit("boom"));
  tally.begin_generation(2, 3);
  EXPECT_FALSE(tally.culprit("worker 2: disk full")) << "that save is over";
}

SaveEnded copied(int worker, std::uint64_t save) {
  SaveEnded copy = ended(save);
  copy.worker = worker;
  copy.path = fmt::format("saved by {}", worker);
  return copy;
}

/// Returns a tally of three hosts with two workers each that have written all parts of save 5.
CheckpointTally with_parts_on_three_hosts() {
  CheckpointTally tally(6);
  tally.store_per_host(3);
  for (int worker = 0; worker < 5; ++worker) tally.part_written(part(worker, 5));
  EXPECT_EQ(words(tally.part_written(part(5, 5))),
            (Words{"join parts 5 by 2", "join parts 5 by 4"}));
  return tally;
}

TEST(CheckpointTally, LetsHostZeroJoinItsPartsWhenAllOtherHostsHaveTheirCopies) {
  CheckpointTally tally = with_parts_on_three_hosts();
  EXPECT_EQ(words(tally.save_ended(copied(4, 5))), Words());
  EXPECT_EQ(words(tally.save_ended(copied(2, 5))), Words{"join parts 5"});
  EXPECT_FALSE(tally.last());
  EXPECT_EQ(words(tally.save_ended(ended(5))), Words{"saved 5 "});
  EXPECT_EQ(tally.last()->copies, (Words{"saved", "saved by 2", "saved by 4"}));
  tally.set_copy(2, "");
  EXPECT_EQ(tally.last()->copies, (Words{"saved", "saved by 2", ""})) << "another disk";
}

TEST(CheckpointTally, ASaveFailsIfOneHostHasNoCopy) {
  CheckpointTally tally = with_parts_on_three_hosts();
  SaveEnded failure = copied(4, 5);
  failure.error = static_cast<std::uint8_t>(Errc::no_space);
  failure.message = "disk full";
  EXPECT_EQ(words(tally.save_ended(failure)), Words{"saved 5 worker 4: disk full"});
  EXPECT_EQ(words(tally.save_ended(copied(2, 5))), Words()) << "its writer removes this copy";
  EXPECT_FALSE(tally.last());
}

TEST(CheckpointTally, PartsOfAGenerationThatIsOverDoNotCount) {
  CheckpointTally tally(2);
  tally.part_written(part(0, 5));
  tally.begin_generation(2, 3);
  EXPECT_EQ(words(tally.part_written(part(1, 5, 1))), Words());
  EXPECT_EQ(words(tally.part_written(part(1, 5, 2))), Words());
  EXPECT_EQ(words(tally.part_written(part(0, 5, 2))), Words{"join parts 5"});
  EXPECT_EQ(words(tally.save_ended(ended(4, 1))), Words()) << "nobody waits for it";
  EXPECT_EQ(tally.last()->step, 4U) << "but it is whole";
}

TEST(CheckpointTally, BeginsWithTheCheckpointThatTheJobGoesOnFrom) {
  CheckpointTally tally(1, true, WholeCheckpoint{.step = 7, .path = "there", .is_saved = true});
  EXPECT_EQ(tally.last_path(), "there");
  tally.reported(report(0, 6));
  EXPECT_EQ(tally.last()->step, 7U);
  tally.reported(report(0, 8));
  EXPECT_EQ(tally.last()->step, 8U);
  EXPECT_FALSE(tally.last()->is_saved);
}

TEST(CheckpointTally, ChipsThatKeepTheirStateLoadOnlyTheCheckpointThatTheJobBeganWith) {
  CheckpointTally tally(1, true, WholeCheckpoint{.step = 7, .path = "there", .is_saved = true});
  tally.reported(report(0, 9));
  EXPECT_EQ(tally.next_begin(0), 7U) << "no chip has committed anything";
  EXPECT_EQ(tally.to_load(7)->path, "there");
  EXPECT_EQ(tally.next_begin(12), 12U);
  EXPECT_FALSE(tally.to_load(12));
}

TEST(CheckpointTally, ChipsThatKeepNothingGoOnFromTheLastCheckpoint) {
  CheckpointTally tally(1, false);
  EXPECT_EQ(tally.next_begin(12), 0U);
  EXPECT_FALSE(tally.to_load(0));
  tally.reported(report(0, 8));
  EXPECT_EQ(tally.next_begin(12), 8U);
  EXPECT_EQ(tally.to_load(8)->path, "at 8");
}

}  // namespace
}  // namespace weft::checkpoint_tally_test
