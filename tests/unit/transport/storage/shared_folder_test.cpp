#include "transport/storage/shared_folder.hpp"

#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::shared_folder_test {
namespace {

namespace fs = std::filesystem;

const std::function<void()> kNoWait = [] {};

TEST(FolderMark, IsSeenInTheSameFolderByAnotherPath) {
  const testing::TemporaryFolder folder;
  const std::string own = folder.path() + "/a/checkpoints";
  std::optional<FolderMark> mark(std::in_place, own, "93ef");
  fs::create_directory_symlink(own, folder.path() + "/link");
  EXPECT_TRUE(find_mark(folder.path() + "/link", "93ef", kNoWait));
  EXPECT_FALSE(find_mark(own, "another", kNoWait));
  EXPECT_FALSE(find_mark(folder.path() + "/b", "93ef", kNoWait));
  mark.reset();
  EXPECT_TRUE(fs::is_empty(own)) << "nothing is left";
}

TEST(FolderMark, RemovesThoseOfKilledJobs) {
  const testing::TemporaryFolder folder;
  const FolderMark killed(folder.path(), "old");
  const FolderMark mark(folder.path(), "new");
  EXPECT_FALSE(find_mark(folder.path(), "old", kNoWait));
  EXPECT_TRUE(find_mark(folder.path(), "new", kNoWait));
}

// A folder of /proc, like one of a network file system, isn't on a disk of this machine.
TEST(FolderMark, IsAnErrorWhereNoFileCanBeMade) {
  testing::expect_error(Errc::io, {"/proc/self/fdinfo/.looks-"},
                        [] { (void)find_mark("/proc/self/fdinfo", "93ef", kNoWait); });
  testing::expect_error(Errc::io, {"can't make /proc/self/fdinfo/.hosts-93ef"},
                        [] { const FolderMark mark("/proc/self/fdinfo", "93ef"); });
}

}  // namespace
}  // namespace weft::shared_folder_test
