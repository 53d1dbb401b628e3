/// What a job makes of the process and the machine it finds itself in: streams, signals, folders,
/// other calls of fit().

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <weft/tests/fault/fault_process.hpp>
#include <weft/transport/board.hpp>

namespace weft {
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
    expect_words(failure_of(app), {"another fit() of this process runs"});
  }
}

/// Nobody reads what it prints: the job goes on, and is cleaned up.
TEST(Host, AClosedStdoutIsNoReasonToLeaveAnything) {
  FaultApp app({"--mode", "none"});
  const std::string job = app.job();
  app.close_output();
  EXPECT_EQ(app.wait(), 0);
  expect_nothing_left(job);
}

/// A pager that has stopped reading must not stop the supervision.
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
  expect_words(result, {"progress.csv", "No such file or directory"});
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

}  // namespace
}  // namespace weft
