/// Stages each accident of the table and asks `weft inspect why` about it while it lasts and after
/// the job has ended. Also asks about each healthy job WEFT_WHY_ANSWERS times (by default 50
/// times); no answer may accuse anybody.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <thread>

#include "inspect/snapshot/snapshot_reader.hpp"
#include "inspect/why/explain.hpp"
#include "tests/accidents/accident_table.hpp"
#include "tests/accidents/holds.hpp"
#include "tests/support/app_process.hpp"
#include "tests/support/sweep.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/board/board.hpp"

namespace weft::accidents_test {
namespace {

using accidents::Accident;
using accidents::Debugger;
using accidents::FrozenGroup;
using accidents::Hand;
using accidents::Healthy;
using testing::AppProcess;
using testing::TemporaryFolder;
using Clock = std::chrono::steady_clock;

/// The limit is generous: on a busy machine a test may be slow and still be right.
constexpr std::chrono::seconds kPatience{120};
constexpr int kAnswers = 3;

struct Answer {
  int code = -1;
  std::string text{};
};

Answer ask(const std::string& job, const char* patience, std::vector<std::string> before = {}) {
  before.insert(before.end(), {WEFT, "inspect", "why", job, "--patience", patience});
  AppProcess why(before);
  const int code = why.wait();
  return {code, why.output()};
}

bool has_all(const std::string& text, const std::vector<std::string>& words) {
  return std::ranges::all_of(
      words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' isn't in:\n" << text;
  }
}
void expect_none(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_EQ(text.find(word), std::string::npos) << "'" << word << "' is in:\n" << text;
  }
}

/// The number of ops in the chain that the mode long_compile compiles.
std::string ops_of_chain() {
  const char* const text = std::getenv("WEFT_CHAIN_OPS");
  return text != nullptr ? text : "60000";
}

std::vector<std::string> words_of_app(const std::string& mode, int workers,
                                      const TemporaryFolder& folder) {
  return {ACCIDENT_APP,
          "--mode",
          mode,
          "--workers",
          std::to_string(workers),
          "--storage",
          folder.path() + "/runs",
          "--checkpoints",
          workers == 0 ? "" : folder.path() + "/checkpoints",
          "--file",
          folder.path() + "/shared",
          "--ops",
          ops_of_chain()};
}

struct AppOptions {
  std::vector<std::string> more{};  ///< further words
  std::string plans{};              ///< the folder that stores plans for later jobs; "": none
};

/// Runs accident_app. The destructor kills the job and removes its shared memory.
class Job {
 public:
  Job(const std::string& mode, int workers, const AppOptions& options = {})
      : app_(words(mode, workers, options), variables(options)),
        run_(app_.wait_for_line("run ").substr(4)),
        job_(app_.job()) {}
  ~Job() {
    end(SIGKILL);
    testing::sweep(job_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  AppProcess& app() { return app_; }
  const std::string& id() const { return job_; }
  const std::string& run() const { return run_; }
  void wait_until_staged() {
    ASSERT_NE(app_.wait_for_line("staged"), "") << "ended before: " << app_.output();
  }
  pid_t worker(int number) const {
    return Board::open(job_, true).readable_rows().at(static_cast<std::size_t>(1 + number)).pid;
  }
  void end(int signal) {
    if (has_ended_) return;
    has_ended_ = true;
    if (signal != 0) ::kill(app_.pid(), signal);
    app_.wait();
    testing::wait_until([&] { return testing::processes_of(job_).empty(); });
  }

 private:
  std::vector<std::string> words(const std::string& mode, int workers,
                                 const AppOptions& options) const {
    std::vector<std::string> all = words_of_app(mode, workers, folder_);
    all.insert(all.end(), options.more.begin(), options.more.end());
    return all;
  }
  static std::vector<std::string> variables(const AppOptions& options) {
    if (options.plans.empty()) return {};
    return {"WEFT_COMPILE_CACHE=" + options.plans};
  }

  const TemporaryFolder folder_;
  AppProcess app_;
  const std::string run_;
  const std::string job_;
  bool has_ended_ = false;
};

/// Runs a job like this one until its plans are stored in the folder.
void store_plans(const Healthy& healthy, const std::string& folder) {
  Job job(healthy.mode, healthy.workers, {.plans = folder});
  ASSERT_NE(job.app().wait_for_line("ran_chain"), "") << job.app().output();
}

/// Waits until the board shows that worker 1 reads an item of a dataset.
void wait_for_item(const Job& job) {
  testing::wait_until(
      [&] { return Board::open(job.id(), true).readable_rows().at(2).inside_number >= 0; });
}

/// Returns whether this command exists on this machine and succeeds.
bool can(const std::vector<std::string>& words) {
  AppProcess program(words);
  return program.wait() == 0;
}

std::vector<std::string> prefix_of(Hand hand) {
  if (hand == Hand::other_pids) return {"/usr/bin/unshare", "--pid", "--fork", "--mount-proc"};
  if (hand == Hand::other_clock) return {"/usr/bin/unshare", "--time", "--boottime", "100000"};
  return {};
}

/// Asks `weft inspect why` until its answer is the right one, and then twice more. No answer may
/// contain a word of `accident.never`, nor "LOST", because the job lives.
void ask_living(const Accident& accident, const std::string& job,
                const std::vector<std::string>& says) {
  const auto deadline = Clock::now() + kPatience;
  std::vector<std::string> never = accident.never;
  never.emplace_back("LOST");
  Answer answer;
  do {
    answer = ask(job, accident.patience, prefix_of(accident.hand));
    expect_none(answer.text, never);
    if (answer.text.find("\n  stack ") != std::string::npos) GTEST_SKIP() << answer.text;
  } while ((answer.code != accident.code || !has_all(answer.text, says)) &&
           !::testing::Test::HasFailure() && Clock::now() < deadline);
  for (int i = 0; i < kAnswers; ++i) {
    if (i > 0) answer = ask(job, accident.patience, prefix_of(accident.hand));
    EXPECT_EQ(answer.code, accident.code) << answer.text;
    expect_words(answer.text, says);
    expect_none(answer.text, never);
  }
}

void wait_for_kept_hang(const std::string& run) {
  const auto deadline = Clock::now() + kPatience;
  while (!std::filesystem::exists(run + "/hang/board.bin")) {
    ASSERT_LT(Clock::now(), deadline) << "no hang was kept in " << run;
    ::sched_yield();
  }
}

/// Replaces "{line}" in `words` by the line number that the answer gives for the throw.
std::vector<std::string> with_line(std::vector<std::string> words, const std::string& answer) {
  std::smatch line;
  if (!std::regex_search(answer, line, std::regex("in line ([0-9]+)"))) return words;
  for (std::string& word : words) {
    word = std::regex_replace(word, std::regex(R"(\{line\})"), line[1].str());
  }
  return words;
}

void ask_dead(const Accident& accident, const Job& job, const std::vector<std::string>& says) {
  Answer answer = ask(job.id(), accident.patience);
  // Another job may have started meanwhile and removed this job's memory.
  if (answer.code == 2) answer = ask(job.run(), accident.patience);
  expect_words(answer.text,
               with_line(accident.afterwards.empty() ? says : accident.afterwards, answer.text));
  expect_none(answer.text, accident.never);
}

/// Runs the accident in its own mount namespace, with a file system that is too small on the folder
/// that the accident fills: /dev/shm, the run folder or the checkpoints.
void run_on_small_disk(const Accident& accident) {
  const TemporaryFolder folder;
  if (!can({"/usr/bin/unshare", "--mount", "/bin/true"})) GTEST_SKIP() << "no mount namespace";
  const bool is_shm = accident.hand == Hand::small_shm;
  const bool is_checkpoint = std::string(accident.mode) == "save_all";
  const std::string small = folder.path() + "/small";
  const std::string large = folder.path() + "/large";
  std::filesystem::create_directory(small);
  const std::string script = fmt::format(
      "mount -t tmpfs -o size={0} tmpfs {1} && {{ {2} --mode {3} --storage {4} --checkpoints {5}; "
      "{6} inspect why {4}/*/; }}",
      is_shm ? "24m" : "2m", is_shm ? "/dev/shm" : small, ACCIDENT_APP, accident.mode,
      is_shm || is_checkpoint ? large : small, is_checkpoint ? small : folder.path() + "/saved",
      WEFT);
  AppProcess shell({"/usr/bin/unshare", "--mount", "/bin/sh", "-c", script},
                   {"XDG_RUNTIME_DIR=" + folder.path()});
  EXPECT_EQ(shell.wait(), accident.code) << shell.output();
  const auto answer = shell.output().find("NO SPACE");
  ASSERT_NE(answer, std::string::npos) << shell.output();
  expect_words(shell.output().substr(answer), accident.says);
  expect_none(shell.output().substr(answer), accident.never);
}

class Accidents : public ::testing::TestWithParam<Accident> {};

TEST_P(Accidents, IsToldRightAndNobodyElseAccused) {
  const Accident& accident = GetParam();
  if (accident.hand == Hand::small_disk || accident.hand == Hand::small_shm) {
    return run_on_small_disk(accident);
  }
  const std::vector<std::string> prefix = prefix_of(accident.hand);
  if (!prefix.empty()) {
    std::vector<std::string> probe = prefix;
    probe.emplace_back("/bin/true");
    if (!can(probe)) GTEST_SKIP() << "this system permits no such namespace";
  }
  AppOptions options;
  if (accident.hand == Hand::no_trainer) options.more = {"--hang-warning", "0"};
  Job job(accident.mode, accident.workers, options);
  std::vector<std::string> says = accident.says;
  if (accident.hand == Hand::ends) {
    job.end(0);
    return ask_dead(accident, job, says);
  }
  ASSERT_NO_FATAL_FAILURE(job.wait_until_staged());
  if (accident.hand == Hand::no_trainer) {
    if (std::string(accident.mode) == "loader") wait_for_item(job);
    job.end(SIGKILL);
    return ask_dead(accident, job, says);
  }
  std::optional<Debugger> debugger;
  std::optional<FrozenGroup> group;
  if (accident.hand == Hand::hold) {
    debugger.emplace(job.worker(1));
    if (!debugger->holds()) GTEST_SKIP() << "this system doesn't permit ptrace";
  }
  if (accident.hand == Hand::freeze) {
    group.emplace(job.worker(1));
    if (!group->is_there()) GTEST_SKIP() << "this system permits no cgroup";
  }
  if (accident.hand == Hand::stop_all) {
    for (int worker = 0; worker < accident.workers; ++worker) ::kill(job.worker(worker), SIGSTOP);
    ::kill(job.app().pid(), SIGSTOP);
  }
  for (std::string& word : says) {
    word = std::regex_replace(word, std::regex(R"(\{trainer\})"), std::to_string(job.app().pid()));
  }
  ask_living(accident, job.id(), says);
  if (IsSkipped()) return;
  const bool is_hang = accident.code == 10 && !accident.is_killed;
  if (is_hang) wait_for_kept_hang(job.run());
  if (group) group->thaw();
  debugger.reset();
  job.end(accident.is_killed ? SIGKILL : SIGTERM);
  ask_dead(accident, job, says);
}

/// Every log names the place of every worker's throw.
TEST(Throws, OfAllWorkersAreInAllLogs) {
  Job job("throw_all", 3);
  job.end(0);
  for (const char* name : {"trainer", "worker-0", "worker-1", "worker-2"}) {
    std::ifstream file(fmt::format("{}/{}.log", job.run(), name));
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(log.find("thrown at throw_here("), std::string::npos) << name << "\n" << log;
  }
}

/// The compiler doesn't look for signals, and without workers its thread can only be ended with the
/// program.
TEST(Sigterm, EndsAJobThatCompilesForLong) {
  for (const int workers : {2, 0}) {
    Job job("long_compile", workers);
    ASSERT_NO_FATAL_FAILURE(job.wait_until_staged());
    testing::wait_until([&] {
      return Board::open(job.id(), true).readable_rows().at(1).state == ActorState::compiling;
    });
    job.end(SIGTERM);
    EXPECT_EQ(job.app().output().find("ran_chain"), std::string::npos) << job.app().output();
  }
}

TEST(ListOfJobs, SaysThatACallbackBlocksTheTrainer) {
  Job job("on_report", 3);
  ASSERT_NO_FATAL_FAILURE(job.wait_until_staged());
  const auto deadline = Clock::now() + kPatience;
  std::string text;
  while (text.find("blocked") == std::string::npos && Clock::now() < deadline) {
    AppProcess list({WEFT, "inspect", "ps"});
    list.wait();
    text = list.output();
    const auto line = text.find(job.id());
    text = line == std::string::npos ? "" : text.substr(line, text.find('\n', line) - line);
  }
  EXPECT_NE(text.find("blocked"), std::string::npos) << text;
}

/// The grace period is an hour, so the workers end only if they are killed with the launcher.
TEST(Launcher, TakesAStoppedWorkerWithItWhenItIsKilled) {
  const TemporaryFolder folder;
  std::vector<std::string> words{WEFT, "launch", "--"};
  const std::vector<std::string> app = words_of_app("stop", 3, folder);
  words.insert(words.end(), app.begin(), app.end());
  words.insert(words.end(), {"--grace", "3600"});
  AppProcess launcher(words);
  const std::string job = launcher.job();
  ASSERT_NE(launcher.wait_for_line("staged"), "") << launcher.output();
  ::kill(launcher.pid(), SIGKILL);
  launcher.wait();
  const auto deadline = Clock::now() + kPatience;
  while (!testing::processes_of(job).empty() && Clock::now() < deadline) ::sched_yield();
  EXPECT_TRUE(testing::processes_of(job).empty());
  for (const int pid : testing::processes_of(job)) ::kill(pid, SIGKILL);
  testing::sweep(job);
}

const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(Table, Accidents, ::testing::ValuesIn(accidents::accidents()), kNameOf);

int answers_wanted() {
  const char* const text = std::getenv("WEFT_WHY_ANSWERS");
  return text != nullptr ? std::atoi(text) : 50;
}

/// Stops and continues a worker so that it runs half of the time, as a CPU limit does.
class StopAndContinue {
 public:
  explicit StopAndContinue(pid_t pid)
      : thread_([pid](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            for (const int signal : {SIGSTOP, SIGCONT}) {
              ::kill(pid, signal);
              ::poll(nullptr, 0, 20);
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

std::string is_accused(const Why& why) {
  if (why.verdict != Verdict::well && why.verdict != Verdict::waits) return to_text(why);
  for (const Root& root : why.roots) {
    const bool says_what_it_does = root.cause == Cause::busy || root.cause == Cause::compiling ||
                                   root.cause == Cause::loading || root.cause == Cause::blocked;
    if (!says_what_it_does) return to_text(why);
  }
  return {};
}

class HealthyJobs : public ::testing::TestWithParam<Healthy> {};

/// The snapshots are only 10 ms apart. A healthy job rests for 10 ms more often than for 50 ms, so
/// wrong answers would be more likely.
TEST_P(HealthyJobs, AreNeverCalledHungAndNeverAccused) {
  constexpr int kBetweenLooksMs = 10;
  const Healthy& healthy = GetParam();
  const TemporaryFolder folder;
  const std::string plans = healthy.is_stored ? folder.path() : "";
  if (healthy.is_stored) store_plans(healthy, plans);
  Job job(healthy.mode, healthy.workers, {.plans = plans});
  ASSERT_NO_FATAL_FAILURE(job.wait_until_staged());
  std::optional<AppProcess> strace;
  std::optional<StopAndContinue> stops;
  if (healthy.hand == Healthy::Hand::strace) {
    if (!std::filesystem::exists("/usr/bin/strace")) GTEST_SKIP() << "there is no strace";
    strace.emplace(std::vector<std::string>{"/usr/bin/strace", "-f", "-o", "/dev/null", "-p",
                                            std::to_string(job.worker(1))});
    if (strace->wait_for_line("attached").empty()) GTEST_SKIP() << strace->output();
  }
  if (healthy.hand == Healthy::Hand::stop_and_continue) stops.emplace(job.worker(1));
  SnapshotReader reader = SnapshotReader::of_job(job.id());
  for (int i = 0; i < answers_wanted(); ++i) {
    const Snapshot before = reader.read();
    ::poll(nullptr, 0, kBetweenLooksMs);
    Snapshot now = reader.read({.events = true});
    if (now.end) {
      ASSERT_STREQ(healthy.mode, "slow_end") << "the job has ended after " << i << " answers";
      break;
    }
    add_sights(now, worth_a_sight(before, now));
    ASSERT_EQ(is_accused(explain(before, now)), "") << "answer " << i;
  }
  stops.reset();
  if (strace) ::kill(strace->pid(), SIGINT);
}

INSTANTIATE_TEST_SUITE_P(Table, HealthyJobs, ::testing::ValuesIn(accidents::healthy_jobs()),
                         kNameOf);

}  // namespace
}  // namespace weft::accidents_test
