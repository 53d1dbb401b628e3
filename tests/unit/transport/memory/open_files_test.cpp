#include "transport/memory/open_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weft::open_files_test {
namespace {

TEST(OpenFiles, AreCountedAsTheyAre) {
  const OpenFiles before = count_open_files();
  const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(count_open_files().open, before.open + 1);
  ::close(one);
  EXPECT_EQ(count_open_files().open, before.open);
  EXPECT_EQ(before.left(), before.limit - before.open);
}

TEST(OpenFiles, AreAllUsedWhereNoneMayBeOpened) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 1;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const OpenFiles files = count_open_files();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(files.limit, 1U);
  EXPECT_EQ(files.left(), 0U);
}

TEST(OpenFiles, OfAJobGrowWithWorkersAndChips) {
  const std::size_t few = open_files_of_job(2, 2, false);
  EXPECT_EQ(open_files_of_job(3, 2, false), few + 5);
  EXPECT_EQ(open_files_of_job(2, 3, false), few + 1);
  EXPECT_EQ(open_files_of_job(2, 2, true), few + 4);
}

TEST(OpenFiles, AreAllowedByTheUserUpToTheHardLimit) {
  const OpenFiles files{.open = 10, .limit = 1024, .hard_limit = 4096};
  EXPECT_EQ(how_to_allow_open_files(4096, files), "ulimit -n 4096");
  const std::string beyond = how_to_allow_open_files(4097, files);
  EXPECT_EQ(beyond.find("prlimit --nofile=4097:4097 --pid $$ (as root: the hard limit is 4096)"),
            0U)
      << beyond;
  EXPECT_NE(beyond.find("--ulimit nofile=4097"), std::string::npos) << beyond;
}

}  // namespace
}  // namespace weft::open_files_test
