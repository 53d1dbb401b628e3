#include "data/remote/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::output_file_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

void write_to(const std::string& path) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span("elements", 8)));
  file.finish();
}

/// Forks a process, which is killed in the middle of writing a file.
void leave_unfinished(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile file(path);
    file.write(std::as_bytes(std::span("half", 4)));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(OutputFile, IsThereWholeOrNotAtAll) {
  const testing::TemporaryFolder folder;
  { const OutputFile file(folder.path() + "/dropped"); }
  EXPECT_TRUE(names_in(folder.path()).empty());
  write_to(folder.path() + "/x");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"x"}));
}

TEST(OutputFile, RemovesWhatKilledWritersHaveLeft) {
  const testing::TemporaryFolder folder;
  leave_unfinished(folder.path() + "/step-10.safetensors");
  EXPECT_EQ(names_in(folder.path()).size(), 1U);
  leave_unfinished(folder.path() + "/step-20.safetensors");
  // This write has removed the unfinished file of the killed process.
  EXPECT_EQ(names_in(folder.path()).size(), 1U);
  write_to(folder.path() + "/step-30.safetensors");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"step-30.safetensors"}));
}

/// A file of a writer that still runs and a file with another name stay, however old they are.
TEST(OutputFile, LeavesFilesOfTheLivingAndOfOthers) {
  const testing::TemporaryFolder folder;
  OutputFile living(folder.path() + "/living");
  for (const char* name : {"x.backup.tmp", "notes.tmp", ".weft-abcdef.tmp", "x.weft-abc.tmp"}) {
    std::ofstream(folder.path() + "/" + name) << "x";
  }
  fs::create_directory(folder.path() + "/x.weft-abcdef.tmp");
  const auto before = names_in(folder.path());
  EXPECT_TRUE(sweep_unfinished(folder.path()).empty());
  EXPECT_EQ(names_in(folder.path()), before);
  living.finish();
  EXPECT_TRUE(fs::exists(folder.path() + "/living"));
}

TEST(SweepUnfinished, OnlySaysWhatItWouldRemove) {
  const testing::TemporaryFolder folder;
  leave_unfinished(folder.path() + "/x");
  ASSERT_EQ(sweep_unfinished(folder.path(), true).size(), 1U);
  EXPECT_EQ(names_in(folder.path()).size(), 1U);
  EXPECT_EQ(sweep_unfinished(folder.path()).size(), 1U);
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(OutputFile, RefusesAUrlWithoutStorage) {
  testing::expect_error(Errc::unavailable, {"gs://bucket/x", "is a URL"},
                        [] { const OutputFile file("gs://bucket/x"); });
  EXPECT_FALSE(fs::exists("gs:"));
}

}  // namespace
}  // namespace weft::output_file_test
