/// Tests that the memory of a dead job over two slots of this machine becomes a checkpoint, from
/// which the job continues with the same bits. Each test has its own control root, so no other
/// test's job sweeps its memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/support/slots.hpp"
#include "transport/memory/segment.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft::hosts_rescue_test {
namespace {

using testing::AppProcess;
using testing::expect_says;
using testing::Slots;
using Json = nlohmann::json;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A job of two hosts with two workers each, in which worker 0 kills its trainer after 25 of 40
/// steps.
class HostsRescue : public ::testing::Test {
 protected:
  std::string saved() const { return folder_.path() + "/saved"; }
  Words here() const { return {"XDG_RUNTIME_DIR=" + folder_.path()}; }
  void begin(const Words& more, const std::string& checkpoints_of_1 = "") {
    Words words{HOST_APP, "--workers", "4",    "--meets-every", "1",  "--resume", "auto", "--json",
                "{json}", "--storage", runs(), "--timeout",     "60", "--steps",  "40"};
    words.insert(words.end(), more.begin(), more.end());
    Words variables = here();
    variables.push_back("WEFT_LOG=info");
    slots_ = std::make_unique<Slots>(words, variables);
    slots_->start(0, 2, {"--checkpoints", saved()});
    slots_->start(1, 2, {"--checkpoints", checkpoints_of_1.empty() ? saved() : checkpoints_of_1});
  }
  std::string runs() const { return folder_.path() + "/runs"; }
  AppProcess& host(std::size_t index) { return slots_->host(index); }
  Json run(const Words& more, const std::string& checkpoints_of_1 = "") {
    begin(more, checkpoints_of_1);
    return slots_->finish();
  }
  /// Runs the job until its trainer is killed, and sets job_. Expects one dead memory of the job
  /// per host.
  void kill_trainer(Words more, const std::string& checkpoints_of_1 = "") {
    more.insert(more.end(),
                {"--signals", "0", "--acts-at", "25", "--once", folder_.path() + "/once"});
    begin(more, checkpoints_of_1);
    EXPECT_EQ(host(0).wait(), 128 + SIGKILL) << host(0).output();
    EXPECT_EQ(host(1).wait(), 1) << host(1).output();
    const Json list = dead();
    ASSERT_EQ(list.size(), 2U) << list << host(1).output();
    job_ = list[0].at("job");
    EXPECT_EQ(list[1].at("job"), job_);
    EXPECT_EQ(list[1].at("host"), 1);
    expect_says(host(1), "`weft rescue " + job_ + "`");
  }
  /// Returns the memories of this test's job, in order of hosts.
  Json dead() const {
    Json own = Json::array();
    for (const Json& one : Json::parse(weft({"rescue", "--list", "--json"}).second)) {
      if (one.at("checkpoints").get<std::string>().starts_with(folder_.path())) own.push_back(one);
    }
    return own;
  }
  /// Runs the `weft` command; returns its exit code and its output.
  std::pair<int, std::string> weft(Words words) const {
    words.insert(words.begin(), WEFT);
    AppProcess command(std::move(words), here());
    const int code = command.wait();
    return {code, command.output()};
  }
  /// Rescues the job on this machine, where the checkpoint must have nearly all steps.
  std::string expect_rescued(const Words& more = {}) {
    Words words{"rescue", job_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto [code, printed] = weft(words);
    EXPECT_EQ(code, 0) << printed;
    if (code != 0) return {};
    const Json rescued = Json::parse(printed);
    // The loop was at step 25, ahead of the steps that the chips had committed.
    EXPECT_GE(rescued.at("step"), 22);
    EXPECT_LE(rescued.at("step"), 25);
    EXPECT_TRUE(rescued.at("left").empty()) << rescued;
    EXPECT_TRUE(dead().empty()) << dead();
    return rescued.at("path");
  }
  /// Returns the id of the memory of host 1; that of host 0 is the job's id.
  std::string memory_of_host_1() const {
    const Json swept = Json::parse(weft({"sweep", "--dry-run", "--json"}).second);
    for (const Json& one : swept) {
      const std::string id = one.at("job");
      const auto& folders = one.at("folders");
      const bool is_here = !folders.empty() && folders[0] == folder_.path() + "/weft";
      if (is_here && id != job_) return id;
    }
    ADD_FAILURE() << swept;
    return {};
  }
  void lose_memory(const std::string& id) const {
    const auto [code, printed] = weft({"sweep", id});
    EXPECT_EQ(code, 0) << printed;
  }
  const Json& undisturbed(const Words& more) {
    const auto found = undisturbed_.find(more);
    if (found != undisturbed_.end()) return found->second;
    return undisturbed_[more] = run(more);
  }

  static inline std::map<Words, Json> undisturbed_;
  const testing::TemporaryFolder folder_;
  std::unique_ptr<Slots> slots_;
  std::string job_;
};

const Words kWhole{"--whole"};
const Words kDivided{};

Words kept(Words words) {
  words.insert(words.end(), {"--keep-for-rescue", "1000"});
  return words;
}

TEST_F(HostsRescue, ContinuesAfterTheDeathOfTheTrainer) {
  const Json whole = undisturbed(kWhole);
  kill_trainer(kept(kWhole));
  expect_rescued();
  EXPECT_EQ(run(kWhole), whole);
  expect_says(host(0), "the job continues at step 2");
}

TEST_F(HostsRescue, KeepsTheMemoryOfAllHostsOfAJobThatSurvivesLosses) {
  kill_trainer({"--whole", "--max-failures", "1"});
  expect_says(host(1), "stays in memory until your next job on this machine");
  expect_rescued();
}

TEST_F(HostsRescue, NeedsOneHostIfEachHasTheWholeState) {
  const Json whole = undisturbed(kWhole);
  kill_trainer(kept(kWhole));
  lose_memory(job_);
  ASSERT_EQ(dead().size(), 1U);
  const auto [code, printed] = weft({"rescue", job_.substr(0, 12)});
  ASSERT_EQ(code, 0) << printed;
  EXPECT_NE(printed.find("each of the 2 hosts had the whole state, so the memory of host 0 ("),
            std::string::npos)
      << printed;
  EXPECT_EQ(run(kWhole), whole);
  expect_says(host(0), "the job continues at step 2");
}

TEST_F(HostsRescue, JoinsThePartsOfStateThatIsDivided) {
  const Json whole = undisturbed(kDivided);
  kill_trainer(kept(kDivided));
  const std::string path = expect_rescued();
  EXPECT_EQ(read_manifest(path).files.size(), 2U);
  EXPECT_FALSE(fs::exists(saved() + "/rescue-" + job_));
  EXPECT_EQ(run(kDivided), whole);
  expect_says(host(0), "the job continues at step 2");
}

/// Each command rescues the memory of one host, as commands on two machines would.
TEST_F(HostsRescue, WaitsForThePartsOfOtherHosts) {
  const Json whole = undisturbed(kDivided);
  kill_trainer(kept(kDivided));
  AppProcess first({WEFT, "rescue", memory_of_host_1(), "--wait", "600"}, here());
  const std::string parts = saved() + "/rescue-" + job_;
  testing::wait_until([&] {
    std::error_code none_yet;
    fs::recursive_directory_iterator file(parts, none_yet);
    return std::any_of(fs::begin(file), fs::end(file), [](const fs::directory_entry& entry) {
      return entry.path().extension() == ".table";
    });
  });
  const auto [code, printed] = weft({"rescue", job_, "--wait", "600"});
  EXPECT_EQ(code, 0) << printed;
  EXPECT_EQ(first.wait(), 0) << first.output();
  expect_says(first, "so the memory of host 1 isn't needed");
  EXPECT_TRUE(dead().empty()) << dead();
  EXPECT_EQ(run(kDivided), whole);
}

TEST_F(HostsRescue, RefusesStateThatIsDividedIfTheMemoryOfAHostIsLost) {
  kill_trainer(kept(kDivided));
  lose_memory(memory_of_host_1());
  const auto [code, printed] = weft({"rescue", job_, "--wait", "0"});
  EXPECT_EQ(code, 2);
  EXPECT_NE(printed.find("is divided over 2 hosts, and the memory of host 1 ("), std::string::npos)
      << printed;
  EXPECT_TRUE(list_checkpoints(saved()).empty());
  EXPECT_EQ(dead().size(), 1U) << "the memory stays until there is a checkpoint";
  lose_memory(job_);
}

TEST_F(HostsRescue, SavesACopyOnEachHostIfTheyShareNoFolder) {
  const std::string other = folder_.path() + "/saved-1";
  const Json whole = run(kWhole, other);
  kill_trainer(kept(kWhole), other);
  expect_rescued();
  EXPECT_FALSE(list_checkpoints(other).empty());
  EXPECT_EQ(run(kWhole, other), whole);
  expect_says(host(0), "the job continues at step 2");
}

TEST_F(HostsRescue, NamesTheFolderIfTheStateIsDividedAndNoneIsShared) {
  const std::string other = folder_.path() + "/saved-1";
  const Json whole = undisturbed(kDivided);
  kill_trainer(kept(kDivided), other);
  const auto [code, printed] = weft({"rescue", job_});
  EXPECT_EQ(code, 2);
  EXPECT_NE(printed.find("run `weft rescue -o FOLDER " + job_), std::string::npos) << printed;
  const std::string path = expect_rescued({"-o", folder_.path() + "/common"});
  EXPECT_EQ(run({"--resume", path}), whole);
}

}  // namespace
}  // namespace weft::hosts_rescue_test
