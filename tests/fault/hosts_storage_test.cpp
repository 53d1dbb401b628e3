/// Runs jobs over slots of this machine that share no folder of checkpoints: each stores its own
/// copies, from which a later job continues with the same bits.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/slots.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft::hosts_storage_test {
namespace {

using testing::AppProcess;
using testing::expect_says;
using testing::Slots;
using Json = nlohmann::json;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A job of two hosts with two workers each, in which each host has the whole state.
class OwnFolders : public ::testing::Test {
 protected:
  /// Returns the folder of a host's checkpoints.
  std::string folder(int host) const { return fmt::format("{}/host-{}", folder_.path(), host); }
  void begin(const Words& more) {
    Words words{HOST_APP,
                "--workers",
                "4",
                "--meets-every",
                "1",
                "--resume",
                "auto",
                "--json",
                "{json}",
                "--storage",
                folder_.path() + "/runs",
                "--timeout",
                "60"};
    words.insert(words.end(), more.begin(), more.end());
    slots_ = std::make_unique<Slots>(words, Words{"WEFT_LOG=info"});
  }
  AppProcess& start(int host, int count = 2) {
    return slots_->start(host, count, {"--checkpoints", folder(host)});
  }
  AppProcess& host(std::size_t index) { return slots_->host(index); }
  /// Runs the job to its end, and returns its result.
  Json run(const Words& more) {
    begin(more);
    start(0);
    start(1);
    return slots_->finish();
  }
  void expect_refused(const std::string& text) {
    start(0);
    start(1);
    EXPECT_NE(host(0).wait(), 0);
    EXPECT_NE(host(1).wait(), 0);
    expect_says(host(0), text);
    expect_says(host(1), text);
  }
  std::vector<std::uint64_t> steps(int host) const {
    std::vector<std::uint64_t> steps;
    for (const CheckpointEntry& entry : list_checkpoints(folder(host))) {
      steps.push_back(entry.step);
    }
    return steps;
  }
  /// Expects that both hosts have copies of the same checkpoints, and no remains of others.
  void expect_copies(const std::vector<std::uint64_t>& expected) const {
    EXPECT_EQ(steps(0), expected);
    EXPECT_EQ(steps(1), expected);
    for (const std::uint64_t step : expected) {
      const auto id = [&](int host) {
        return read_manifest(fmt::format("{}/checkpoint_{:06}", folder(host), step)).save_id;
      };
      EXPECT_NE(id(0), "");
      EXPECT_EQ(id(0), id(1));
    }
    for (const int host : {0, 1}) {
      for (const auto& entry : fs::directory_iterator(folder(host))) {
        const std::string name = entry.path().filename();
        EXPECT_TRUE(name == ".lock" || name.starts_with(kCheckpointPrefix)) << entry.path();
      }
    }
  }
  /// Trains for 20 steps and saves at 10 and 20. Returns the result of another job, which trains
  /// for 40 steps at once.
  Json train_20() {
    const Json whole = run({"--whole", "--steps", "40"});
    EXPECT_EQ(whole.at("counter"), 40);
    run({"--whole", "--steps", "20", "--save-every", "10"});
    return whole;
  }

  const testing::TemporaryFolder folder_;
  std::unique_ptr<Slots> slots_;
};

TEST_F(OwnFolders, HaveCopiesFromWhichAJobContinuesWithTheSameBits) {
  const Json whole = train_20();
  expect_says(host(0), "host 1 (");
  expect_says(host(0), "doesn't share host 0's folder of checkpoints");
  expect_copies({10, 20});
  EXPECT_EQ(run({"--whole", "--steps", "40", "--save-every", "10"}), whole);
  expect_says(host(0), "the job continues at step 20 from " + folder(0) + "/checkpoint_000020");
  expect_copies({10, 20, 30, 40});
}

TEST_F(OwnFolders, KeepAsManyCopiesAsTheJobAsksFor) {
  run({"--whole", "--steps", "40", "--save-every", "10", "--keep", "2"});
  expect_copies({30, 40});
}

TEST_F(OwnFolders, ContinueFromAnEarlierCheckpointIfACopyOfTheLastIsMissing) {
  const Json whole = train_20();
  fs::remove_all(folder(1) + "/checkpoint_000020");
  EXPECT_EQ(run({"--whole", "--steps", "40"}), whole);
  expect_says(host(0), folder(1) + ") has no whole copy of " + folder(0) + "/checkpoint_000020");
  expect_says(host(0), "the job continues at step 10 from");
  fs::resize_file(folder(1) + "/checkpoint_000010/part-00001-of-00002.weft", 1);
  begin({"--whole", "--steps", "40"});
  expect_refused("copy it there, or move it away on host 0");
}

TEST_F(OwnFolders, ContinueFromACopyMadeByHand) {
  const Json whole = train_20();
  fs::remove_all(folder(0));
  begin({"--whole", "--steps", "40"});
  expect_refused(folder(1) + ") has a checkpoint of step 20, but host 0");
  fs::create_directories(folder(0));
  fs::copy(folder(1) + "/checkpoint_000020", folder(0) + "/checkpoint_000020",
           fs::copy_options::recursive);
  EXPECT_EQ(run({"--whole", "--steps", "40"}), whole);
  expect_says(host(0), "the job continues at step 20 from");
}

TEST_F(OwnFolders, AreRefusedForStateThatIsDividedOverHosts) {
  begin({"--save-every", "10"});
  expect_refused("'sum' is divided over hosts, which share no folder of checkpoints");
  EXPECT_TRUE(steps(0).empty());
  const Json unsaved = run({"--steps", "20"});
  EXPECT_EQ(unsaved.at("counter"), 20) << "a job that saves nothing needs no folder";
}

TEST_F(OwnFolders, AreReadAgainAfterALossIfTheChipsKeepNoState) {
  const Words loses{"--kills",          "3",  "--once",         folder_.path() + "/once",
                    "--acts-at",        "25", "--max-failures", "1",
                    "--state-versions", "1"};
  Words all{"--whole", "--steps", "40", "--save-every", "10"};
  const Json whole = run(all);
  fs::remove_all(folder(0));
  fs::remove_all(folder(1));
  all.insert(all.end(), loses.begin(), loses.end());
  EXPECT_EQ(run(all), whole);
  expect_says(host(0), "the job continues at step 20");
  expect_copies({10, 20, 30, 40});
}

TEST_F(OwnFolders, BeginEmptyOnAHostThatReplacesALostOne) {
  begin({"--whole", "--steps", "40", "--save-every", "10", "--max-failures", "3", "--signals", "2",
         "--acts-at", "25", "--once", folder_.path() + "/once"});
  start(0);
  start(1);
  EXPECT_NE(host(0).wait_for_line("is lost"), "") << host(0).output();
  EXPECT_EQ(host(1).wait(), 128 + SIGKILL);
  fs::remove_all(folder(1));
  start(1);
  EXPECT_EQ(host(0).wait(), 0) << host(0).output();
  EXPECT_EQ(host(2).wait(), 0) << host(2).output();
  expect_says(host(0), "host 1 gets the state of step");
  const Json whole = host(0).result();
  EXPECT_EQ(steps(0), (std::vector<std::uint64_t>{10, 20, 30, 40}));
  EXPECT_EQ(steps(1), (std::vector<std::uint64_t>{30, 40}));
  EXPECT_EQ(whole.at("counter"), 40);
  EXPECT_EQ(run({"--whole", "--steps", "40"}), whole);
  expect_says(host(0), "the job continues at step 40 from");
}

TEST_F(OwnFolders, RefuseTwoFoldersForThreeHosts) {
  begin({"--whole", "--workers", "3"});
  slots_->start(0, 3, {"--checkpoints", folder(0)});
  slots_->start(1, 3, {"--checkpoints", folder(0)});
  slots_->start(2, 3, {"--checkpoints", folder(1)});
  for (const std::size_t i : {0, 1, 2}) EXPECT_NE(host(i).wait(), 0);
  expect_says(host(0), "give all hosts one folder that they share, or each its own");
  begin({"--whole", "--workers", "3"});
  slots_->start(0, 3, {"--checkpoints", folder(0)});
  slots_->start(1, 3, {"--checkpoints", folder(1)});
  slots_->start(2, 3, {"--checkpoints", folder(1)});
  for (const std::size_t i : {0, 1, 2}) EXPECT_NE(host(i).wait(), 0);
  expect_says(host(0), folder(1) + " is in use: ");
}

}  // namespace
}  // namespace weft::hosts_storage_test
