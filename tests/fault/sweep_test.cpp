/// Tests `weft sweep` beside living jobs and killed jobs. Each test has its own control root, which
/// no other test's job sweeps, and every call names its job.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "tests/fault/fault_process.hpp"
#include "transport/memory/segment.hpp"

namespace weft::sweep_test {
namespace {

namespace fs = std::filesystem;
using testing::AppProcess;
using Json = nlohmann::json;

class Sweep : public ::testing::Test {
 protected:
  Sweep() : app({FAULT_APP, "--json", "{json}", "--mode", "mark", "--max-failures", "1"}, {here}) {
    job = app.job();
    mark = app.wait_for_line("mark loop");
  }
  ~Sweep() override { fs::remove_all(runtime); }

  void kill_trainer() {
    ::kill(app.pid(), SIGKILL);
    app.wait();
    testing::wait_until([&] { return testing::processes_of(job).empty(); });
  }
  /// Runs `weft sweep`; returns its exit code and its output.
  std::pair<int, std::string> sweep(std::vector<std::string> words, std::string place) const {
    words.insert(words.begin(), {WEFT, "sweep"});
    AppProcess sweeper(std::move(words), {std::move(place)});
    const int code = sweeper.wait();
    return {code, sweeper.output()};
  }
  std::size_t segments() const { return Segment::list("weft-" + job).size(); }

  fs::path runtime = fs::temp_directory_path() / fmt::format("weft-sweep-{}", ::getpid());
  std::string here = "XDG_RUNTIME_DIR=" + make(runtime / "here");
  std::string elsewhere = "XDG_RUNTIME_DIR=" + make(runtime / "elsewhere");
  AppProcess app;
  std::string job;
  std::string mark;

 private:
  static std::string make(const fs::path& folder) {
    fs::create_directories(folder);
    return folder;
  }
};

TEST_F(Sweep, RemovesWhatATrainerThatWasKilledLeft) {
  kill_trainer();
  ASSERT_EQ(segments(), 9U);  // the board, the black box, the control segment and six chips
  const auto [dry_code, listed] = sweep({"--dry-run", "--json", job}, here);
  EXPECT_EQ(dry_code, 0);
  const Json json = Json::parse(listed);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0].at("job"), job);
  EXPECT_EQ(json[0].at("state"), "dead");
  EXPECT_EQ(json[0].at("segments").size(), 9U);
  EXPECT_GT(json[0].at("bytes"), 0);
  EXPECT_EQ(json[0].at("removed"), false);
  EXPECT_EQ(segments(), 9U);

  const auto [code, printed] = sweep({job}, here);
  EXPECT_EQ(code, 0) << printed;
  EXPECT_NE(printed.find(job + "  dead "), std::string::npos) << printed;
  EXPECT_NE(printed.find("removed\n"), std::string::npos) << printed;
  EXPECT_EQ(segments(), 0U);
  EXPECT_TRUE(fs::is_empty(runtime / "here" / "weft"));

  const auto [again_code, again] = sweep({job}, here);
  EXPECT_EQ(again_code, 1);
  EXPECT_NE(again.find("it has left nothing"), std::string::npos) << again;
}

TEST_F(Sweep, DoesNotTouchAJobThatLivesWhereverItsLockIs) {
  const auto [code, here_text] = sweep({job}, here);
  EXPECT_EQ(code, 1);
  EXPECT_NE(here_text.find(job + ".lock is locked"), std::string::npos) << here_text;
  const auto [elsewhere_code, elsewhere_text] = sweep({job}, elsewhere);
  EXPECT_EQ(elsewhere_code, 1);
  EXPECT_NE(elsewhere_text.find(job + ".lock is locked"), std::string::npos) << elsewhere_text;
  EXPECT_EQ(segments(), 9U);

  ::kill(std::stoi(mark.substr(mark.rfind(' '))), SIGKILL);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("history").size(), 8U);
  EXPECT_EQ(segments(), 0U);
}

/// A folder and a link are in place of locks. The sweep names them and exits with 1, but it sweeps
/// the dead job.
TEST_F(Sweep, IsNotEndedByWhatIsNoneOfWeft) {
  kill_trainer();
  const fs::path root = runtime / "here" / "weft";
  const std::string folder(32, 'a');
  const std::string link(32, 'b');
  fs::create_directory(root / (folder + ".lock"));
  fs::create_symlink(runtime, root / (link + ".lock"));
  ASSERT_EQ(::mkfifo((root / (std::string(32, 'c') + ".lock")).c_str(), 0600), 0);
  const auto [code, printed] = sweep({job, folder, link}, here);
  EXPECT_EQ(code, 1);
  for (const std::string& other : {folder, link}) {
    const std::string lock = "can't open the lock " + (root / (other + ".lock")).string();
    EXPECT_NE(printed.find(other + "  unknown "), std::string::npos) << printed;
    EXPECT_NE(printed.find(lock), std::string::npos) << printed;
  }
  EXPECT_EQ(segments(), 0U);
  AppProcess next({FAULT_APP, "--json", "{json}"}, {here});
  EXPECT_EQ(next.wait(), 0) << next.output();
}

/// A job isn't dead while one of its processes can still write to its memory.
TEST_F(Sweep, WaitsForWorkersThatOutliveTheirTrainer) {
  Segment kept = Segment::open("weft-" + job + "-chip-0", true, 1);
  kill_trainer();
  const auto [code, text] = sweep({job}, here);
  EXPECT_EQ(code, 1);
  EXPECT_NE(text.find(fmt::format("process {} has its memory open", ::getpid())), std::string::npos)
      << text;
  EXPECT_EQ(segments(), 9U);
  kept = Segment::anonymous(1);
  EXPECT_EQ(sweep({job}, here).first, 0);
  EXPECT_EQ(segments(), 0U);
}

}  // namespace
}  // namespace weft::sweep_test
