/// Tests jobs that lack memory, or room on a disk.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fault/fault_process.hpp"
#include "tests/support/memory_limit.hpp"
#include "tests/support/small_shm.hpp"

namespace weft::want_test {
namespace {

using testing::ChildProcess;
using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;
using testing::MemoryLimit;
using testing::wait_until;

bool is_stopped(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return text.find("State:\tT") != std::string::npos;
}

TEST(Want, OfMemoryIsTheErrorOfTheLoop) {
  FaultApp app({"--mode", "bad_alloc"});
  expect_words(failure_of(app), {"worker 1", "step 3", "std::bad_alloc"});
}

TEST(Want, OfMemoryIsNamedWhereTheKernelKillsForIt) {
  const MemoryLimit limit(64 << 20);
  if (!limit.is_set()) GTEST_SKIP() << "no right to make a cgroup with a memory limit";
  for (const bool survives : {false, true}) {
    FaultApp app({"--mode", "oom", "--max-failures", survives ? "1" : "0"});
    const std::string job = app.job();
    const std::string line = app.wait_for_line("mark oom");
    const pid_t pid = std::stoi(line.substr(line.rfind(' ')));
    wait_until([&] { return is_stopped(pid); });
    ASSERT_TRUE(limit.add(pid));
    ::kill(pid, SIGCONT);
    EXPECT_EQ(app.wait(), survives ? 0 : 1) << app.output();
    const auto result = app.result();
    const auto message = survives ? result.at("failures").at(0) : result.at("message");
    expect_words({{"message", message}},
                 {"worker 1", "signal 9 (SIGKILL) at step 3", "because memory ran out"});
    expect_nothing_left(job);
  }
}

/// A job that can't write its reports ends and names the reason, although the file for its error
/// can't be written to the run folder either.
TEST(Want, OfRoomInTheRunFolderIsNamed) {
  const auto folder = std::filesystem::temp_directory_path() / testing::unique_job();
  std::filesystem::create_directory(folder);
  ChildProcess child([&] {
    testing::mount_own(folder.string(), "size=32k");
    FaultApp app({"--mode", "none", "--storage", folder.string(), "--steps", "1000000"});
    const auto result = failure_of(app);
    EXPECT_EQ(result.at("code"), "no_space");
    expect_words(result, {"progress.csv", "No space left on device"});
    if (::testing::Test::HasFailure()) throw std::runtime_error("a failure in the fork, see above");
  });
  const std::string text = child.join();
  std::filesystem::remove_all(folder);
  if (text.starts_with(testing::kNoNamespace)) GTEST_SKIP() << text;
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace weft::want_test
