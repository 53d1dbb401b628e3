#include "data/files/file_bytes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/support/expect_error.hpp"

namespace weft::file_bytes_test {
namespace {

namespace fs = std::filesystem;

class FileBytes : public ::testing::Test {
 protected:
  ~FileBytes() override { fs::remove(path); }

  void write(std::size_t bytes) const { std::ofstream(path) << std::string(bytes, 'x'); }

  std::string path = ::testing::TempDir() + fmt::format("weft-file-bytes-{}", ::getpid());
};

TEST_F(FileBytes, AreTheWholeFileUpToTheLimit) {
  for (const std::size_t bytes : {0, 1, 99, 100}) {
    write(bytes);
    EXPECT_EQ(read_file_bytes(path, 100), std::vector(bytes, std::byte{'x'}));
  }
  write(101);
  testing::expect_error(Errc::invalid_argument, {path, "more than 100 bytes"},
                        [&] { read_file_bytes(path, 100); });
}

/// Files in /proc have the size 0 in their metadata, but aren't empty.
TEST_F(FileBytes, AreReadWhateverSizeTheFileSays) {
  EXPECT_GT(read_file_bytes("/proc/self/maps", 1 << 20).size(), 100U);
  testing::expect_error(Errc::invalid_argument, {"more than 100 bytes"},
                        [&] { read_file_bytes("/proc/self/maps", 100); });
}

TEST_F(FileBytes, OfAFileThatMayNotBeReadAreAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read all";
  write(1);
  fs::permissions(path, fs::perms::none);
  testing::expect_error(Errc::io, {path, "Permission denied"}, [&] { read_file_bytes(path, 100); });
}

}  // namespace
}  // namespace weft::file_bytes_test
