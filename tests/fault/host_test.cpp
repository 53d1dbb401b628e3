/// Tests how a job uses its process and its machine: output streams, signals, the run folder, and
/// other calls of fit().

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/fault/fault_process.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/board/board.hpp"
#include "transport/memory/segment.hpp"

namespace weft::host_test {
namespace {

namespace fs = std::filesystem;
using testing::AppProcess;
using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;
using testing::wait_until;

TEST(Host, AFitThatThrewIsNotTheWorkersOwn) {
  FaultApp app({"--mode", "second_fit"});
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST(Host, AFitInsideAFitIsRefused) {
  for (const char* workers : {"0", "2"}) {
    FaultApp app({"--mode", "fit_in_loop", "--victim", "0", "--workers", workers});
    expect_words(failure_of(app), {"inside the training loop", "fault_app.cpp"});
  }
}

/// A job whose output has no reader continues, and cleans up at its end.
TEST(Host, AClosedStdoutIsNoReasonToLeaveAnything) {
  FaultApp app({"--mode", "none"});
  const std::string job = app.job();
  app.close_output();
  EXPECT_EQ(app.wait(), 0);
  expect_nothing_left(job);
}

/// The trainer reads the names of collectives from the board and writes them as JSON, which must be
/// UTF-8.
TEST(Host, ABoardThatWasScribbledOnIsNoReasonToThrow) {
  FaultApp app({"--mode", "mark"});
  const Board board = Board::open(app.job(), false);
  const std::string mark = app.wait_for_line("mark loop");
  for (const int chip : {2, 3}) board.device(chip).enter_collective(7, "\xff\xfe '\x9b'");
  ::kill(std::stoi(mark.substr(mark.rfind(' '))), SIGKILL);
  expect_words(failure_of(app), {"worker 1", "signal 9 (SIGKILL)", "\\xff\\xfe #7 '\\x9b'"});
}

TEST(Host, WhatALoopThrowsReachesItAsUtf8) {
  FaultApp app({"--mode", "throw_bytes"});
  expect_words(failure_of(app), {"worker 1", "std::runtime_error: boom \\xff"});
}

/// A pager that has stopped reading must not stop the trainer from watching its workers.
TEST(Host, ALossIsSeenWhileNobodyReadsStdout) {
  FaultApp app({"--mode", "flood"});
  const std::string job = app.job();
  const std::string mark = app.wait_for_line("mark flood");
  const Board board = Board::open(job, true);
  wait_until([&] { return app.output_blocked(); });
  ::kill(std::stoi(mark.substr(mark.rfind(' '))), SIGKILL);
  wait_until([&] { return board.status() == JobStatus::failed; });
  expect_words(failure_of(app), {"worker 1", "signal 9 (SIGKILL)"});
}

TEST(Host, ClosedStreamsAreNotTakenForFilesOfTheJob) {
  AppProcess app(
      {"/bin/sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh", FAULT_APP, "--json", "{json}"});
  EXPECT_EQ(app.wait(), 0);
  EXPECT_TRUE(app.result().at("ok"));
}

/// The error names a limit on open files. Jobs succeed with this limit and are refused with the
/// next lower one. A worker that is started again needs no more files.
TEST(Host, TooFewOpenFilesAreRefusedWithTheNumberThatIsEnough) {
  const auto run_at = [](int limit, const char* workers) {
    return std::make_unique<AppProcess>(std::vector<std::string>{
        "/bin/sh", "-c", fmt::format("ulimit -S -n {}; exec \"$@\"", limit), "sh", FAULT_APP,
        "--json", "{json}", "--workers", workers, "--mode", *workers == '0' ? "none" : "segv",
        "--max-failures", *workers == '0' ? "0" : "1"});
  };
  for (const char* workers : {"0", "2", "7"}) {
    const auto few = run_at(16, workers);
    EXPECT_NE(few->wait(), 0);
    const std::string text = few->output();
    const auto command = text.rfind("ulimit -n ");
    ASSERT_NE(command, text.npos) << text;
    const int enough = std::stoi(text.substr(command + 10));
    const auto refused = run_at(enough - 1, workers);
    EXPECT_NE(refused->wait(), 0);
    EXPECT_NE(refused->output().find(fmt::format("ulimit -n is {}", enough - 1)), text.npos);
    const auto allowed = run_at(enough, workers);
    EXPECT_EQ(allowed->wait(), 0) << allowed->output();
  }
}

TEST(Host, ARuntimeFolderTooLongForASocketIsPassedOver) {
  testing::AppProcess app({FAULT_APP, "--json", "{json}"},
                          {"XDG_RUNTIME_DIR=/tmp/" + std::string(200, 'x')});
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST(Host, ARuntimeFolderThatIsNotThereIsPassedOver) {
  AppProcess app({FAULT_APP, "--json", "{json}"}, {"XDG_RUNTIME_DIR=/nowhere"});
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST(Host, WhatIsNotOfAJobStaysInTheRuntimeFolder) {
  const fs::path runtime = fs::temp_directory_path() / fmt::format("weft-host-{}", ::getpid());
  fs::create_directories(runtime / "weft");
  fs::permissions(runtime / "weft", fs::perms::owner_all);
  std::ofstream(runtime / "weft" / "notes.lock") << "mine";
  AppProcess app({FAULT_APP, "--json", "{json}"}, {"XDG_RUNTIME_DIR=" + runtime.string()});
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_TRUE(fs::exists(runtime / "weft" / "notes.lock"));
  EXPECT_EQ(std::distance(fs::directory_iterator(runtime / "weft"), {}), 1);
  fs::remove_all(runtime);
}

TEST(Host, ARunFolderThatIsLostIsAnErrorInTheResult) {
  FaultApp app({"--mode", "lose_folder"});
  const auto result = failure_of(app);
  EXPECT_EQ(result["code"], "io");
  expect_words(result, {"progress.csv", "the run's folder", "was removed while the job ran"});
}

/// While the worker waits it reports nothing. So only its restart needs the lost run folder, for
/// the log of the new process.
TEST(Host, ARunFolderThatIsLostBeforeAWorkerComesAgainIsNamed) {
  FaultApp app({"--mode", "mark", "--at", "0", "--max-failures", "-1"});
  const std::string job = app.job();
  const std::string mark = app.wait_for_line("mark loop");
  const std::string run_dir = Board::open(job, true).header().run_dir;
  wait_until([&] {  // another process may be about to write a log's first line
    std::error_code error;
    std::filesystem::remove_all(run_dir, error);
    return !error;
  });
  ::kill(std::stoi(mark.substr(mark.rfind(' '))), SIGKILL);
  const auto result = failure_of(app);
  EXPECT_EQ(result["code"], "io");
  expect_words(result, {"the run's folder", "was removed while the job ran"});
}

TEST(Host, AnInterruptEndsTheJobAndCleansUp) {
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) {
    FaultApp app({"--mode", "mark", "--grace", "0"});
    app.job();
    app.wait_for_line("mark loop");
    ::kill(app.pid(), signal);
    const auto result = failure_of(app);
    EXPECT_EQ(result["code"], "cancelled");
    expect_words(result, {"the trainer", "got SIG", ::sigabbrev_np(signal)});
  }
}

TEST(Host, ALoopThatDoesNotReturnEndsWithItsProcessAtTheSecondInterrupt) {
  FaultApp app({"--mode", "mark", "--workers", "0", "--victim", "0"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGINT);
  EXPECT_NE(app.wait_for_line("a second signal ends the process"), "");
  ::kill(app.pid(), SIGINT);
  EXPECT_EQ(app.wait(), 128 + SIGINT);
  expect_nothing_left(job);
}

TEST(Host, AnExitInACallbackLeavesNothing) {
  for (const char* mode : {"exit_in_callback", "quick_exit_in_callback"}) {
    for (const char* workers : {"0", "3"}) {
      FaultApp app({"--mode", mode, "--workers", workers});
      const std::string job = app.job();
      EXPECT_EQ(app.wait(), 5) << app.output();
      wait_until([&] { return testing::processes_of(job).empty(); });
      expect_nothing_left(job);
    }
  }
}

TEST(Host, AForkedChildThatExitsTakesNothingFromTheJob) {
  FaultApp app({"--mode", "fork_in_callback", "--max-failures", "1"});
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_TRUE(app.result().at("ok"));
}

/// These signals end the trainer before it can clean up. The kernel frees the arenas, which no
/// longer have names. The other segments stay for `weft inspect` until the next job.
TEST(Host, ATrainerThatIsKilledLeavesNoTensors) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGQUIT, SIGXCPU}) {
    for (const char* workers : {"0", "3"}) {
      const char* victim = *workers == '0' ? "0" : "1";
      AppProcess app({"/bin/sh", "-c", "ulimit -c 0; exec \"$@\"", "sh", FAULT_APP, "--json",
                      "{json}", "--mode", "mark", "--workers", workers, "--victim", victim});
      const std::string job = app.job();
      app.wait_for_line("mark loop");
      ::kill(app.pid(), signal);
      EXPECT_EQ(app.wait(), 128 + signal);
      wait_until([&] { return testing::processes_of(job).empty(); });
      EXPECT_EQ(Segment::list("weft-" + job),
                (std::vector{Board::segment_name(job), BlackBoxWriter::segment_name(job),
                             "weft-" + job + "-control"}));
    }
  }
  FaultApp next({"--mode", "none"});
  EXPECT_EQ(next.wait(), 0) << next.output();
}

/// Returns words that run fault_app after commands of a shell, such as `ulimit -f 100000`.
std::vector<std::string> fault_app_after(const std::string& commands) {
  return {"/bin/sh", "-c", commands + " && exec \"$@\" 2>&1", "sh", FAULT_APP, "--json", "{json}"};
}

TEST(Host, ALimitOfFileSizesIsAnErrorThatNamesIt) {
  AppProcess app(fault_app_after("ulimit -f 100000"));
  EXPECT_NE(app.wait(), 128 + SIGXFSZ);
  EXPECT_NE(app.output().find("ulimit -f unlimited"), std::string::npos) << app.output();
}

TEST(Host, AStackThatIsTooSmallIsAnErrorThatNamesItsLimit) {
  for (const char* kib : {"64", "511"}) {
    AppProcess app(fault_app_after(fmt::format("ulimit -s {}", kib)));
    EXPECT_NE(app.wait(), 128 + SIGSEGV);
    const std::string has = fmt::format("a thread's stack has {} KiB", kib);
    EXPECT_NE(app.output().find(has), std::string::npos) << app.output();
    EXPECT_NE(app.output().find("ulimit -s 8192"), std::string::npos) << app.output();
  }
}

TEST(Host, AMissingProcIsAnErrorThatNamesIt) {
  if (AppProcess({"/usr/bin/unshare", "--mount", "/bin/true"}).wait() != 0) {
    GTEST_SKIP() << "this system permits no mount namespace";
  }
  std::vector<std::string> words = fault_app_after("mount -t tmpfs tmpfs /proc");
  words.insert(words.begin(), {"/usr/bin/unshare", "--mount"});
  AppProcess app(words);
  EXPECT_NE(app.wait(), 0);
  EXPECT_NE(app.output().find("/proc/self/exe can't be read"), std::string::npos) << app.output();
  EXPECT_NE(app.output().find("mount -t proc"), std::string::npos) << app.output();
}

TEST(Host, WorkersEndWithATrainerThatIsKilledAndTheNextJobCleansUp) {
  FaultApp app({"--mode", "mark"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGKILL);
  EXPECT_EQ(app.wait(), 128 + SIGKILL);
  wait_until([&] { return testing::processes_of(job).empty(); });
  FaultApp next({"--mode", "none"});
  EXPECT_EQ(next.wait(), 0) << next.output();
  expect_nothing_left(job);
}

/// Returns whether the process has a file of the job's arenas mapped or open.
bool has_arenas(int pid, const std::string& job) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  bool found = mapped.find(job + "-chip-") != mapped.npos;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    std::error_code closed;
    const std::string file = std::filesystem::read_symlink(entry, closed).string();
    found = found || file.find(job + "-chip-") != file.npos;
  }
  return found;
}

/// A child that a worker has forked may outlive the job. It must not keep memory or a lock of the
/// job.
TEST(Host, AChildThatAWorkerForkedHasNoArenas) {
  for (const char* max_failures : {"0", "1"}) {
    FaultApp app({"--mode", "fork", "--at", "3", "--max-failures", max_failures});
    const std::string job = app.job();
    const std::string line = app.wait_for_line("mark child");
    const int child = std::stoi(line.substr(line.rfind(' ')));
    std::optional<Board> board(Board::open(job, true));
    const int parent = board->read(2).pid;
    EXPECT_TRUE(has_arenas(parent, job));
    EXPECT_FALSE(has_arenas(child, job));
    ::kill(app.pid(), SIGKILL);
    wait_until([&] { return testing::processes_of(job) == std::vector<pid_t>{child}; });
    // A process that ends disappears from /proc a moment before its files are closed.
    wait_until([&] { return !board->is_held(); });
    board.reset();  // a sweep skips jobs whose board a reader has open
    ::kill(child, SIGKILL);
    app.wait();
    wait_until([&] { return testing::processes_of(job).empty(); });
    // Another job may have swept this job meanwhile.
    AppProcess({WEFT, "sweep", job}).wait();
    testing::expect_nothing_left(job);
  }
}

}  // namespace
}  // namespace weft::host_test
