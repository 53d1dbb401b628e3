/// Tests jobs whose processes are all dead: `weft rescue` saves their last step, and `weft launch`
/// restarts a killed program from it. Each test has its own control root, so no other test's job
/// can sweep it. WEFT_KILLS sets the number of kills; the default is 12.

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "tests/fault/fault_process.hpp"
#include "tests/fault/killer.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/memory/segment.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft::rescue_test {
namespace {

namespace fs = std::filesystem;
using testing::AppProcess;
using testing::processes_of;
using testing::wait_until;
using Json = nlohmann::json;

// A job has to last longer than the time between the step that a test sees and the test's kill.
constexpr int kEpochs = 12;
constexpr std::uint64_t kSteps = 44 * kEpochs;
// The epochs of a job that a test ends before it is done.
constexpr int kEndless = 1'000'000;

class Rescue : public ::testing::Test {
 protected:
  Rescue() {
    path_ = (fs::temp_directory_path() / "weft-rescue-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~Rescue() override { fs::remove_all(path_); }

  std::vector<std::string> here() const { return {"XDG_RUNTIME_DIR=" + path_}; }
  static std::vector<std::string> launch_digits(const char* max_failures, int epochs = kEpochs) {
    return {WEFT,
            "launch",
            "-n",
            "2",
            "--chips",
            "2",
            "--max-failures",
            max_failures,
            "--",
            DIGITS,
            "--epochs",
            std::to_string(epochs),
            "--json",
            "{json}"};
  }
  std::string saved() const { return path_ + "/saved"; }
  std::string root() const { return path_ + "/weft"; }
  /// Returns the words that run digits, which saves checkpoints only if `more` asks for it.
  std::vector<std::string> digits(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{DIGITS,
                                   "--epochs",
                                   std::to_string(kEpochs),
                                   "--workers",
                                   "2",
                                   "--chips",
                                   "2",
                                   "--json",
                                   "{json}",
                                   "--resume",
                                   "auto",
                                   "--checkpoint-dir",
                                   saved(),
                                   "--checkpoint-every",
                                   "0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  const Json& undisturbed() const {
    static const Json result = [this] {
      AppProcess app(digits(), here());
      EXPECT_EQ(app.wait(), 0) << app.output();
      return app.result();
    }();
    return result;
  }
  /// Runs the `weft` command; returns its exit code and its output.
  std::pair<int, std::string> weft(std::vector<std::string> words) const {
    words.insert(words.begin(), WEFT);
    AppProcess command(std::move(words), here());
    const int code = command.wait();
    return {code, command.output()};
  }
  static std::size_t segments(const std::string& job) {
    return Segment::list("weft-" + job).size();
  }
  static void wait_for_end_of(const std::string& job) {
    wait_until([&] { return processes_of(job).empty(); });
  }
  /// Kills the trainer and waits for the end of the workers, which end with it.
  static void kill_trainer(AppProcess& app, const std::string& job) {
    ::kill(app.pid(), SIGKILL);
    app.wait();
    wait_for_end_of(job);
  }

  std::string path_;
};

/// Waits until worker 0 has run at least 5 more steps, so that all chips have committed a step
/// after `begin`, and then for a random number of yields. Returns false if the job has ended.
bool let_run(const std::string& job, std::uint64_t begin, std::mt19937_64& random) {
  const Board board = Board::open(job, true);
  const auto over = [&] { return board.status() > JobStatus::running; };
  const std::uint64_t until = std::max(board.read(1).step, begin) + 5 + random() % 20;
  wait_until([&] { return over() || board.read(1).step >= until; });
  for (auto i = random() % 300; i > 0; --i) ::sched_yield();
  return !over();
}

/// Kills the trainer of a launched program after some steps, and waits until the program is started
/// again. Sets `job` and `step` to the next job and the step at which it continues. Returns false
/// if the job has ended before.
bool kill_launched(AppProcess& app, std::string& job, std::uint64_t& step,
                   std::mt19937_64& random) {
  if (!let_run(job, step, random)) return false;
  ::kill(Board::open(job, true).header().trainer_pid, SIGKILL);
  const std::string again = app.wait_for_line("it is started again and continues at step");
  if (again.empty()) {
    ADD_FAILURE() << app.output();
    return false;
  }
  const std::uint64_t next = std::stoull(again.substr(again.rfind(' ')));
  EXPECT_GT(next, step);
  step = next;
  const std::string line = app.wait_for_line("job ");
  job = line.substr(line.find("job ") + 4, 32);
  return true;
}

/// At whatever instant the trainer is killed, the rescued checkpoint is complete and has every step
/// that all chips had committed, and the next job ends with the same bits as an undisturbed one.
TEST_F(Rescue, LosesNoStepOfAJobWhoseTrainerIsKilled) {
  std::mt19937_64 random(1);
  std::uint64_t before = 0;
  for (int kills = 0; kills < testing::kill_count(12); ++kills) {
    AppProcess app(digits({"--max-failures", "3"}), here());
    const std::string job = app.job().substr(0, 32);
    if (!let_run(job, before, random)) break;
    const std::uint64_t seen = Board::open(job, true).read(1).step;
    kill_trainer(app, job);
    const auto [code, printed] = weft({"rescue", job, "--json"});
    ASSERT_EQ(code, 0) << printed;
    const Json rescued = Json::parse(printed);
    const std::uint64_t step = rescued.at("step");
    // A worker may be in a step that the other workers haven't begun.
    EXPECT_GE(step + 2, seen);
    EXPECT_GT(step, before);
    before = step;
    const std::string path = rescued.at("path");
    EXPECT_EQ(list_checkpoints(saved()).back().path, path);
    for (const std::string& fault : verify_checkpoint(path, read_manifest(path))) {
      ADD_FAILURE() << path << ": " << fault;
    }
    EXPECT_EQ(segments(job), 0U);
    EXPECT_FALSE(fs::exists(folder_in(root(), job)));
  }
  EXPECT_GT(before, 0U);
  AppProcess last(digits(), here());
  EXPECT_EQ(last.wait(), 0) << last.output();
  const Json result = last.result();
  fs::remove_all(saved());
  EXPECT_EQ(result.at("params_digest"), undisturbed().at("params_digest"));
  const Json& all = undisturbed().at("loss_history");
  const Json& own = result.at("loss_history");
  ASSERT_EQ(own.size(), kSteps - before);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i], all[i + before]) << i;
}

TEST_F(Rescue, GoesOnOnAnotherMesh) {
  AppProcess app(digits({"--max-failures", "3"}), here());
  const std::string job = app.job().substr(0, 32);
  std::mt19937_64 random(2);
  ASSERT_TRUE(let_run(job, 0, random));
  kill_trainer(app, job);
  ASSERT_EQ(weft({"rescue", job}).first, 0);
  std::vector<std::string> words = digits();
  words[6] = "1";  // the number of chips
  AppProcess last(words, here());
  EXPECT_EQ(last.wait(), 0) << last.output();
  const Json own = last.result().at("loss_history");
  fs::remove_all(saved());
  const Json& all = undisturbed().at("loss_history");
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double expected = all[all.size() - own.size() + i];
    EXPECT_NEAR(own[i].get<double>(), expected, 1e-4 * (1 + expected)) << i;
  }
}

TEST_F(Rescue, WhySaysWhichJobHasContinuedByHand) {
  AppProcess app(digits({"--max-failures", "3"}), here());
  const std::string job = app.job().substr(0, 32);
  std::mt19937_64 random(3);
  ASSERT_TRUE(let_run(job, 0, random));
  const std::string run = Board::open(job, true).header().run_dir;
  kill_trainer(app, job);
  ASSERT_EQ(weft({"rescue", job}).first, 0);
  const std::string before = weft({"inspect", "why", run}).second;
  EXPECT_NE(before.find("start a job with run.resume"), std::string::npos) << before;
  AppProcess last(digits(), here());
  const std::string next = last.job().substr(0, 32);
  EXPECT_EQ(last.wait(), 0) << last.output();
  const std::string after = weft({"inspect", "why", run}).second;
  EXPECT_NE(after.find(next + " continued at that step"), std::string::npos) << after;
  EXPECT_EQ(after.find("start a job with run.resume"), std::string::npos) << after;
}

/// Runs a job that fails or is cancelled and keeps its memory for a later rescue.
class KeptJob : public Rescue {
 protected:
  std::string run(const std::vector<std::string>& arguments, int code) {
    std::vector<std::string> words{
        FAULT_APP, "--json", "{json}", "--keep-for-rescue", "1000", "--checkpoint-path", saved()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    AppProcess app(words, here());
    const std::string job = app.job().substr(0, 32);
    EXPECT_EQ(app.wait(), code) << app.output();
    output_ = app.output();
    wait_for_end_of(job);
    return job;
  }
  std::string output_;
};

TEST_F(KeptJob, IsRescuedThoughLaterJobsCameAndWereSwept) {
  const std::string job = run({"--mode", "throw", "--at", "5"}, 1);
  EXPECT_GT(segments(job), 2U);
  EXPECT_NE(output_.find("`weft rescue " + job + "`"), std::string::npos) << output_;
  const std::string later = run({"--mode", "none"}, 0);
  EXPECT_EQ(segments(later), 0U) << "it ended well";
  const auto [swept, printed] = weft({"sweep", "--json"});
  EXPECT_EQ(swept, 0) << printed;
  EXPECT_GT(segments(job), 2U);
  // Other tests that run at the same time may leave dead jobs too, so the test looks for its own
  // id.
  const Json list = Json::parse(weft({"rescue", "--list", "--json"}).second);
  EXPECT_TRUE(std::ranges::any_of(list, [&](const Json& dead) { return dead.at("job") == job; }))
      << list;
  const auto [code, rescued] = weft({"rescue", "--json", job.substr(0, 12)});
  ASSERT_EQ(code, 0) << rescued;
  EXPECT_EQ(Json::parse(rescued).at("step"), 4) << "no chip had begun step 5, which commits 4";
  EXPECT_EQ(segments(job), 0U);
  const CheckpointManifest manifest = read_manifest(list_checkpoints(saved()).back().path);
  ASSERT_EQ(manifest.tensors.size(), 1U);
  EXPECT_EQ(manifest.tensors[0].name, "sum");
  EXPECT_EQ(manifest.mesh_shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_TRUE(manifest.partial);
}

TEST_F(KeptJob, IsRemovedWhenItIsNamed) {
  const std::string job = run({"--mode", "throw", "--at", "5"}, 1);
  const auto [listed, list] = weft({"sweep", "--dry-run", "--json", job});
  ASSERT_EQ(Json::parse(list).size(), 1U) << list;
  EXPECT_EQ(Json::parse(list)[0].at("state"), "kept");
  EXPECT_EQ(weft({"sweep", job}).first, 0);
  EXPECT_EQ(segments(job), 0U);
  const auto [code, printed] = weft({"rescue", job});
  EXPECT_EQ(code, 2);
  EXPECT_NE(printed.find("nothing of job"), std::string::npos) << printed;
}

TEST_F(KeptJob, IsKeptWhereverItsLockIs) {
  const std::string job = run({"--mode", "throw", "--at", "5"}, 1);
  const std::string elsewhere = path_ + "/elsewhere";
  fs::create_directory(elsewhere);
  for (const bool is_dry : {true, false}) {
    std::vector<std::string> words{WEFT, "sweep", "--json"};
    if (is_dry) words.insert(words.end(), {"--dry-run", job});
    AppProcess sweeper(words, {"XDG_RUNTIME_DIR=" + elsewhere});
    sweeper.wait();
    EXPECT_GT(segments(job), 2U);
    if (is_dry) {
      const Json listed = Json::parse(sweeper.output());
      ASSERT_EQ(listed.size(), 1U) << listed;
      EXPECT_EQ(listed[0].at("state"), "kept");
      EXPECT_EQ(listed[0].at("folders")[0], root());
    }
  }
  AppProcess rescuer({WEFT, "rescue", job}, {"XDG_RUNTIME_DIR=" + elsewhere});
  EXPECT_EQ(rescuer.wait(), 0) << rescuer.output();
  EXPECT_EQ(segments(job), 0U);
}

TEST_F(KeptJob, LeavesNothingIfACheckpointHasAllOfIt) {
  const std::string job = run({"--mode", "throw", "--at", "0"}, 1);
  EXPECT_EQ(segments(job), 0U) << "no step was made";
}

TEST_F(Rescue, SaysWhyThereIsNothingToRescue) {
  AppProcess alive(
      {FAULT_APP, "--json", "{json}", "--mode", "mark", "--at", "0", "--max-failures", "1"},
      here());
  const std::string job = alive.job().substr(0, 32);
  (void)alive.wait_for_line("mark loop");
  const auto [code, printed] = weft({"rescue", job});
  EXPECT_EQ(code, 2);
  EXPECT_NE(printed.find("is alive"), std::string::npos) << printed;
  kill_trainer(alive, job);
  const auto [dead_code, dead] = weft({"rescue", job});
  EXPECT_EQ(dead_code, 2);
  EXPECT_NE(dead.find("before all its chips had completed one step"), std::string::npos) << dead;
  AppProcess survives_nothing({FAULT_APP, "--json", "{json}", "--mode", "mark"}, here());
  const std::string other = survives_nothing.job().substr(0, 32);
  (void)survives_nothing.wait_for_line("mark loop");
  kill_trainer(survives_nothing, other);
  const auto [other_code, none] = weft({"rescue", other});
  EXPECT_EQ(other_code, 2);
  EXPECT_NE(none.find("run.keep_for_rescue_s = 0"), std::string::npos) << none;
  EXPECT_EQ(weft({"sweep", other}).first, 0);
  EXPECT_EQ(segments(job) + segments(other), 0U);
}

/// A run card is read from the memory of a dead job, so its bytes can't be trusted.
TEST_F(Rescue, RefusesADamagedRunCard) {
  AppProcess app(digits({"--max-failures", "3"}), here());
  const std::string job = app.job().substr(0, 32);
  std::mt19937_64 random(3);
  ASSERT_TRUE(let_run(job, 0, random));
  kill_trainer(app, job);
  std::fstream card(run_card_in(root(), job), std::ios::in | std::ios::out | std::ios::binary);
  card.seekp(40);
  card.put('x');
  card.close();
  const auto [code, printed] = weft({"rescue", job});
  EXPECT_EQ(code, 2);
  EXPECT_NE(printed.find("run card"), std::string::npos) << printed;
  EXPECT_TRUE(list_checkpoints(saved()).empty());
  EXPECT_EQ(weft({"sweep", job}).first, 0);
}

/// No checkpoint path is set, so the rescued checkpoint is in the killed run's folder.
TEST_F(Rescue, LaunchStartsAKilledProgramAgainFromItsLastStep) {
  std::mt19937_64 random(4);
  AppProcess app(launch_digits("-1"), here());
  std::string job = app.job().substr(0, 32);
  std::uint64_t step = 0;
  for (int kills = 0; kills < 4; ++kills) {
    if (!kill_launched(app, job, step, random)) break;
  }
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("params_digest"), undisturbed().at("params_digest"));
  EXPECT_EQ(segments(job), 0U);
}

/// Returns the values of the named columns in the rows of all these runs' progress.csv files; "" if
/// a run doesn't have the column. Leaves out rows that don't have the first of the columns.
std::vector<std::vector<std::string>> rows_of(const std::vector<std::string>& runs,
                                              const std::vector<std::string>& columns) {
  const auto fields_of = [](const std::string& line) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    return fields;
  };
  std::vector<std::vector<std::string>> rows;
  for (const std::string& run : runs) {
    std::ifstream file(run + "/progress.csv");
    std::string line;
    std::getline(file, line);
    const std::vector<std::string> names = fields_of(line);
    while (std::getline(file, line)) {
      const std::vector<std::string> fields = fields_of(line);
      std::vector<std::string>& row = rows.emplace_back();
      for (const std::string& column : columns) {
        const auto place =
            static_cast<std::size_t>(std::ranges::find(names, column) - names.begin());
        row.push_back(place < names.size() ? fields.at(place) : "");
      }
      if (row.front().empty()) rows.pop_back();
    }
  }
  return rows;
}

/// The columns of digits' reports that don't depend on time.
const std::vector<std::string> kColumns{"step", "epoch", "loss", "test_accuracy"};

TEST_F(Rescue, ByHandLosesNoReport) {
  std::mt19937_64 random(8);
  AppProcess app(digits({"--max-failures", "3"}), here());
  const std::string job = app.job().substr(0, 32);
  ASSERT_TRUE(let_run(job, 0, random));
  const std::string run = Board::open(job, true).header().run_dir;
  kill_trainer(app, job);
  ASSERT_EQ(weft({"rescue", job}).first, 0);
  AppProcess last(digits(), here());
  EXPECT_EQ(last.wait(), 0) << last.output();
  fs::remove_all(saved());
  EXPECT_EQ(rows_of({run, last.result().at("run_dir")}, kColumns),
            rows_of({undisturbed().at("run_dir")}, kColumns));
}

/// Kills the trainer of a launched digits several times. In the runs' progress.csv no report is
/// missing, and none is there twice.
TEST_F(Rescue, LaunchLosesNoReport) {
  std::mt19937_64 random(7);
  AppProcess app(launch_digits("-1"), here());
  std::string job = app.job().substr(0, 32);
  std::vector<std::string> runs{Board::open(job, true).header().run_dir};
  std::uint64_t step = 0;
  for (int kills = 0; kills < 4; ++kills) {
    if (!kill_launched(app, job, step, random)) break;
    runs.push_back(Board::open(job, true).header().run_dir);
  }
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_GT(runs.size(), 1U);
  EXPECT_EQ(rows_of(runs, kColumns), rows_of({undisturbed().at("run_dir")}, kColumns));
}

/// After the trainer's death, another job of the same user removes the memory of dead jobs before
/// the launcher has read it.
TEST_F(Rescue, LaunchLosesNoStepToAnotherJobThatBegins) {
  std::mt19937_64 random(5);
  AppProcess app(launch_digits("1"), here());
  const std::string job = app.job().substr(0, 32);
  ASSERT_TRUE(let_run(job, 0, random));
  ::kill(app.pid(), SIGSTOP);
  ::kill(Board::open(job, true).header().trainer_pid, SIGKILL);
  wait_for_end_of(job);
  AppProcess other({FAULT_APP, "--json", "{json}", "--mode", "none"}, here());
  EXPECT_EQ(other.wait(), 0) << other.output();
  ::kill(app.pid(), SIGCONT);
  const std::string again = app.wait_for_line("it is started again and continues at step");
  ASSERT_NE(again, "") << app.output();
  EXPECT_GT(std::stoull(again.substr(again.rfind(' '))), 0U);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("params_digest"), undisturbed().at("params_digest"));
}

TEST_F(Rescue, LaunchBeginsAgainWhereNoStepWasKept) {
  AppProcess app({WEFT, "launch", "--max-failures", "-1", "--", FAULT_APP, "--json", "{json}",
                  "--mode", "kill_trainer", "--at", "0"},
                 here());
  EXPECT_EQ(app.wait(), 128 + SIGKILL) << app.output();
  EXPECT_NE(app.output().find("it is started again and begins again, because none of its steps"),
            std::string::npos)
      << app.output();
  EXPECT_NE(app.output().find("3 times at step 0: it isn't started again; none of its steps "
                              "was kept"),
            std::string::npos)
      << app.output();
}

TEST_F(Rescue, LaunchSaysWhereTheLastStepIsWhenItStartsNoMore) {
  std::mt19937_64 random(6);
  AppProcess app(launch_digits("1", kEndless), here());
  std::string job = app.job().substr(0, 32);
  std::uint64_t step = 0;
  for (int kills = 0; kills < 2; ++kills) {
    ASSERT_TRUE(let_run(job, step, random)) << kills << " kills of " << job << "\n" << app.output();
    step = Board::open(job, true).read(1).step;
    ::kill(Board::open(job, true).header().trainer_pid, SIGKILL);
    if (kills > 0) break;
    const std::string line = app.wait_for_line("job ");
    job = line.substr(line.find("job ") + 4, 32);
  }
  EXPECT_EQ(app.wait(), 128 + SIGKILL) << app.output();
  const auto said = app.output().find("isn't started again after --max-failures 1; step ");
  ASSERT_NE(said, std::string::npos) << app.output();
  EXPECT_EQ(segments(job), 0U);
}

TEST_F(Rescue, LaunchGivesUpWhereTheProgramDiesWithoutAStep) {
  AppProcess app({WEFT, "launch", "--max-failures", "-1", "--", FAULT_APP, "--json", "{json}",
                  "--mode", "kill_trainer", "--at", "4"},
                 here());
  EXPECT_EQ(app.wait(), 128 + SIGKILL) << app.output();
  EXPECT_NE(app.output().find("3 times at step "), std::string::npos) << app.output();
}

}  // namespace
}  // namespace weft::rescue_test
