/// Stages accidents in a job over two hosts. Each host is a slot of this machine with one worker.
/// `weft inspect why` must name the cause, which is on host 1, from host 0.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "inspect/hosts/job_reader.hpp"
#include "tests/accidents/holds.hpp"
#include "tests/support/app_process.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/net_machines.hpp"
#include "tests/support/sweep.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::hosts_accidents_test {
namespace {

using accidents::Debugger;
using accidents::FrozenGroup;
using testing::AppProcess;
using testing::TemporaryFolder;
using Clock = std::chrono::steady_clock;

/// The limit is generous: on a busy machine a test may be slow and still be right.
constexpr std::chrono::seconds kPatience{120};

/// The test's own action on the job to cause the accident.
enum class Hand { none, hold, freeze, stop_all };

struct HostAccident {
  const char* name;
  const char* mode;  ///< the --mode of accident_app, whose victim is worker 1
  Hand hand = Hand::none;
  int code = 10;
  std::vector<std::string> says{};
  std::vector<std::string> never{"LOST", "worker 0 (pid"};
};

const std::vector<HostAccident> kAccidents{
    {.name = "AStoppedWorker",
     .mode = "stop",
     .says = {"STOPPED  worker 1 (pid ", " on host 1)", "stages.cpp", "never reached #",
              "1 chip of worker 0", "fix:   kill -CONT"}},
    {.name = "AnEndlessLoop",
     .mode = "spin",
     .says = {"BUSY     worker 1", " on host 1)", "at     spin", "stages.cpp"}},
    {.name = "AWaitForNothing",
     .mode = "pause",
     .says = {"BUSY     worker 1", " on host 1)", "stay_here", "stages.cpp"}},
    {.name = "AMutexThatItsOwnThreadHolds",
     .mode = "lock_twice",
     .says = {"DEADLOCK worker 1", " on host 1)", "its own thread holds", "stages.cpp"}},
    {.name = "AMutexWhoseThreadHasEnded",
     .mode = "mutex_of_a_thread",
     .says = {"DEADLOCK worker 1", " on host 1)", "is gone", "stages.cpp"}},
    {.name = "AnItemThatIsNotRead",
     .mode = "loader",
     .says = {"BUSY     worker 1", " on host 1)", "item 3 of stuck", "wait_for_disk"}},
    {.name = "AChildThatDoesNotStart",
     .mode = "vfork",
     .says = {"BUSY     worker 1", " on host 1)", "waits for its child", "wait_for_child"}},
    {.name = "ReportsWithoutEnd",
     .mode = "report",
     .says = {"BUSY     worker 1", " on host 1)", "reports again and again"}},
    {.name = "ADebugger",
     .mode = "plain",
     .hand = Hand::hold,
     .code = 12,
     .says = {"HELD     worker 1", " on host 1)"}},
    {.name = "AFrozenGroup",
     .mode = "plain",
     .hand = Hand::freeze,
     .says = {"FROZEN   worker 1", " on host 1)", "frozen by the cgroup"}},
    {.name = "AllProcessesStopped",
     .mode = "plain",
     .hand = Hand::stop_all,
     .says = {"STOPPED  trainer", "worker 1 (pid ", "fix:   kill -CONT"},
     .never = {"LOST", "BUSY"}},
};

struct Answer {
  int code = -1;
  std::string text{};
};

/// Runs accident_app on two hosts. The destructor kills them and removes their shared memory.
class HostsJob {
 public:
  /// `prefix` are the words before the command of host 1.
  explicit HostsJob(const std::string& mode, const std::vector<std::string>& prefix = {},
                    const std::vector<std::string>& more = {}) {
    std::ofstream(secret()) << "0123456789abcdef0123456789abcdef\n";
    ::chmod(secret().c_str(), 0600);
    start(0, mode, {}, more);
    start(1, mode, prefix, more);
    run_ = host(0).wait_for_line("run ").substr(4);
    id_ = host(0).job();
  }
  ~HostsJob() {
    const std::optional<HostList> list = HostList::read(run_);
    for (const auto& each : hosts_) {
      ::kill(each->pid(), SIGCONT);
      ::kill(each->pid(), SIGKILL);
      each->wait();
    }
    testing::wait_until([&] { return testing::processes_of(id_).empty(); });
    if (!list) return;
    for (const HostEntry& entry : list->hosts) testing::sweep(entry.where.memory_id);
  }
  HostsJob(const HostsJob&) = delete;
  HostsJob& operator=(const HostsJob&) = delete;

  AppProcess& host(std::size_t index) { return *hosts_.at(index); }
  const std::string& id() const { return id_; }
  const std::string& run() const { return run_; }
  /// Waits until the victim or, in a job without a victim, a worker of host 0 has begun the
  /// accident.
  void wait_until_staged(bool has_victim) {
    ASSERT_NE(host(has_victim ? 1 : 0).wait_for_line("staged"), "") << host(0).output();
  }
  pid_t worker(int number) {
    return JobReader::of_job(id_).read({.control = false}).worker(number)->pid;
  }
  Answer why(const std::vector<std::string>& variables = {}) const {
    AppProcess why({WEFT, "inspect", "why", id_, "--patience", "0.3"}, variables);
    const int code = why.wait();
    return {code, why.output()};
  }

 private:
  std::string secret() const { return folder_.path() + "/secret"; }
  void start(int index, const std::string& mode, const std::vector<std::string>& prefix,
             const std::vector<std::string>& more) {
    std::vector<std::string> words = prefix;
    words.insert(words.end(), {ACCIDENT_APP, "--mode", mode, "--workers", "2", "--storage",
                               folder_.path() + "/runs", "--file", folder_.path() + "/shared"});
    words.insert(words.end(), more.begin(), more.end());
    hosts_.push_back(std::make_unique<AppProcess>(
        words, std::vector<std::string>{"WEFT_HOSTS=2", fmt::format("WEFT_HOST_INDEX={}", index),
                                        fmt::format("WEFT_TRAINER=127.0.0.1:{}", port_),
                                        "WEFT_SECRET_FILE=" + secret()}));
  }

  const TemporaryFolder folder_;
  const int port_ = testing::free_port();
  std::vector<std::unique_ptr<AppProcess>> hosts_;
  std::string run_;
  std::string id_;
};

bool has_all(const std::string& text, const std::vector<std::string>& words) {
  return std::ranges::all_of(
      words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

/// Asks until the answer is the right one. No answer may have a word of `never`.
void expect_why(const HostsJob& job, const HostAccident& accident,
                const std::vector<std::string>& variables = {}) {
  const auto deadline = Clock::now() + kPatience;
  Answer answer;
  do {
    answer = job.why(variables);
    if (answer.text.find("\n  stack ") != std::string::npos) GTEST_SKIP() << answer.text;
    for (const std::string& word : accident.never) {
      ASSERT_EQ(answer.text.find(word), std::string::npos) << word << " is in\n" << answer.text;
    }
  } while ((answer.code != accident.code || !has_all(answer.text, accident.says)) &&
           Clock::now() < deadline);
  EXPECT_EQ(answer.code, accident.code);
  for (const std::string& word : accident.says) {
    EXPECT_NE(answer.text.find(word), std::string::npos) << word << " isn't in\n" << answer.text;
  }
}

class HostAccidents : public ::testing::TestWithParam<HostAccident> {};

TEST_P(HostAccidents, AreNamedFromHost0) {
  const HostAccident& accident = GetParam();
  HostsJob job(accident.mode);
  ASSERT_NO_FATAL_FAILURE(job.wait_until_staged(std::string(accident.mode) != "plain"));
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
    const pid_t workers[] = {job.worker(0), job.worker(1)};
    for (const pid_t worker : workers) ::kill(worker, SIGSTOP);
    ::kill(job.host(0).pid(), SIGSTOP);
  }
  expect_why(job, accident);
}

const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Table, HostAccidents, ::testing::ValuesIn(kAccidents), kNameOf);

TEST(HostAccidentsOfTheDead, AreNamedWithTheStackOfTheOtherHost) {
  HostsJob job("loader");
  ASSERT_NO_FATAL_FAILURE(job.wait_until_staged(true));
  const std::string kept = job.run() + "/host-1/hang/processes.json";
  testing::wait_until([&] {
    return std::filesystem::exists(kept) && std::filesystem::exists(job.run() + "/hang/board.bin");
  });
  ::kill(job.host(0).pid(), SIGINT);
  testing::wait_until([&] {
    return std::filesystem::exists(job.run() + "/result.json") &&
           testing::processes_of(job.id()).empty();
  });
  AppProcess why({WEFT, "inspect", "why", job.run()});
  why.wait();
  if (why.output().find("\n  stack ") != std::string::npos) GTEST_SKIP() << why.output();
  for (const char* word : {"BUSY     worker 1", " on host 1)", "item 3 of stuck", "wait_for_disk",
                           "this was recorded while the job hung"}) {
    EXPECT_NE(why.output().find(word), std::string::npos) << word << "\n" << why.output();
  }
}

/// Host 1 has its own /dev/shm, pids and name, as another machine has.
class OtherMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> probe = prefix();
    probe.emplace_back("/bin/true");
    AppProcess can(probe);
    if (can.wait() != 0) GTEST_SKIP() << "this system permits no such namespaces: " << can.output();
    job_.emplace("pause", prefix());
    job_->wait_until_staged(true);
  }

  std::vector<std::string> prefix() const {
    std::vector<std::string> words = testing::in_own_namespaces("weft-other");
    words.insert(words.end(), {"/usr/bin/env", "XDG_RUNTIME_DIR=" + root_.path()});
    return words;
  }
  /// Returns the setting that enters the namespaces of host 1.
  std::string via() {
    const std::string children = fmt::format("/proc/{0}/task/{0}/children", job_->host(1).pid());
    int child = 0;
    std::ifstream(children) >> child;
    return fmt::format("WEFT_INSPECT_VIA=nsenter -t {} -m -p env WEFT_NAME={{host}}", child);
  }

  const TemporaryFolder root_;
  std::optional<HostsJob> job_;
};

TEST_F(OtherMachine, IsReadThroughACommand) {
  expect_why(
      *job_,
      {.name = "",
       .mode = "",
       .says = {"BUSY     worker 1", " on host 1)", "stay_here", "stages.cpp", "never reached #4"}},
      {via()});
}

TEST_F(OtherMachine, IsARowIfItDoesNotAnswer) {
  std::string text;
  // Host 0 gets the rows of host 1 each second.
  testing::wait_until([&] {
    AppProcess actors({WEFT, "inspect", "actors", job_->id()}, {"WEFT_INSPECT_VIA=false {host}"});
    EXPECT_EQ(actors.wait(), 0);
    text = actors.output();
    return text.find("user code") != std::string::npos;
  });
  EXPECT_NE(text.find("host 1 (weft-other)"), std::string::npos) << text;
  EXPECT_NE(text.find("silent"), std::string::npos) << text;
  const Answer answer = job_->why({"WEFT_INSPECT_VIA=false {host}"});
  EXPECT_NE(answer.text.find("note     host 1 (weft-other): silent"), std::string::npos)
      << answer.text;
}

/// The answers from another host are checked before they are used.
TEST_F(OtherMachine, IsARowIfItAnswersSomethingElse) {
  for (const char* via : {"echo {host}", "printf \\x00\\xff%s\\n {host}", "sh -c yes {host}"}) {
    AppProcess actors({WEFT, "inspect", "actors", job_->id()},
                      {fmt::format("WEFT_INSPECT_VIA={}", via)});
    EXPECT_EQ(actors.wait(), 0) << actors.output();
    EXPECT_NE(actors.output().find("isn't one of weft inspect --raw"), std::string::npos)
        << via << '\n'
        << actors.output();
  }
}

TEST_F(OtherMachine, HasItsEventsInTheTrace) {
  const TemporaryFolder folder;
  AppProcess trace({WEFT, "inspect", "trace", job_->id(), "-o", folder.path() + "/trace.json"},
                   {via()});
  EXPECT_EQ(trace.wait(), 0) << trace.output();
  std::ifstream file(folder.path() + "/trace.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("chip 1"), std::string::npos);
  EXPECT_NE(text.find("worker 1 (pid"), std::string::npos);
  EXPECT_NE(trace.output().find("host 1 (weft-other): its clock is known to within"),
            std::string::npos)
      << trace.output();
}

/// While a job waits for a host that replaces a lost one, no process of the job is to blame.
TEST(LostHost, IsNamedWhileTheJobWaitsForAnother) {
  HostsJob job("pause", {}, {"--max-failures", "1"});
  job.wait_until_staged(true);
  ::kill(job.host(1).pid(), SIGKILL);
  expect_why(job, {.name = "",
                   .mode = "",
                   .says = {"LOST     worker 1, host 1 is lost", "WEFT_HOST_INDEX = 1",
                            "fix:   start the program again as host 1"},
                   .never = {"BUSY     worker 0", "FAILED   worker 0"}});
}

/// After the job's end, the run folder has the records of both hosts.
TEST(HostsRecord, IsReadFromTheRunFolder) {
  HostsJob job("kill");
  EXPECT_NE(job.host(0).wait_for_line(""), "");
  testing::wait_until([&] {
    return std::filesystem::exists(job.run() + "/blackbox/board.bin") &&
           std::filesystem::exists(job.run() + "/host-1/blackbox/board.bin");
  });
  JobReader reader = JobReader::of_folder(job.run());
  const Snapshot ended = reader.read({.events = true});
  ASSERT_TRUE(ended.control);
  EXPECT_TRUE(ended.control->knows(0));
  EXPECT_TRUE(ended.control->knows(1));
  EXPECT_NE(ended.chip_ring(0), nullptr);
  EXPECT_NE(ended.chip_ring(1), nullptr);
  AppProcess why({WEFT, "inspect", "why", job.run()});
  EXPECT_EQ(why.wait(), 10);
  EXPECT_NE(why.output().find("KILLED   worker 1"), std::string::npos) << why.output();
}

}  // namespace
}  // namespace weft::hosts_accidents_test
