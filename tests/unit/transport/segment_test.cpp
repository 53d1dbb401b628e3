#include <weft/transport/segment.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

#include <weft/tests/support/child_process.hpp>
#include <weft/tests/support/expect_error.hpp>

namespace weft {
namespace {

using testing::ChildProcess;
using testing::expect_error;
using testing::unique_job;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A name that is free now and after the test.
class SegmentTest : public ::testing::Test {
 protected:
  ~SegmentTest() override { unlink(path.c_str()); }

  void plant(mode_t mode, std::size_t bytes) const {
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }

  std::string name = "weft-" + unique_job() + "-test";
  std::string path = "/dev/shm/" + name;
};

TEST_F(SegmentTest, IsAPlainFileThatOnlyItsUserMayRead) {
  const Segment segment = Segment::create(name, 10000);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFREG | 0600U);
  EXPECT_EQ(status.st_size, 10000);
  EXPECT_EQ(segment.name(), name);
  EXPECT_EQ(segment.capacity(), 10000U);
}

TEST_F(SegmentTest, TakesNoMemoryBeforeItIsReserved) {
  Segment segment = Segment::create(name, 8192 * kMiB);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
  segment.reserve(5000, 10000);  // bytes 5000 to 14999 lie in three pages
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_blocks * 512, 3 * 4096);
}

TEST_F(SegmentTest, ReservesWhatIsMissingBetweenReservedRanges) {
  Segment segment = Segment::create(name, kMiB);
  segment.reserve(0, 4096);
  segment.reserve(5 * 4096, 4096);
  segment.reserve(2 * 4096, 4096);
  segment.reserve(0, 6 * 4096);
  segment.reserve(4096, 100);  // within the merged range
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_blocks * 512, 6 * 4096);
}

TEST_F(SegmentTest, KeepsWhatWasWrittenWhenReservedAgain) {
  Segment segment = Segment::anonymous(kMiB);
  segment.reserve(0, 4096);
  segment.data()[17] = std::byte{42};
  segment.reserve(0, kMiB);
  EXPECT_EQ(segment.data()[17], std::byte{42});
  EXPECT_EQ(segment.data()[kMiB - 1], std::byte{0});
}

TEST_F(SegmentTest, RefusesRangesBeyondTheCapacity) {
  Segment segment = Segment::anonymous(4096);
  expect_error(Errc::invalid_argument, {"4096"}, [&] { segment.reserve(4000, 97); });
  expect_error(Errc::invalid_argument, {"4096"}, [&] { segment.reserve(1, ~std::size_t{0}); });
}

TEST_F(SegmentTest, SharesItsBytesWithOtherProcesses) {
  Segment segment = Segment::create(name, kMiB);
  segment.reserve(0, 4096);
  ChildProcess child([this] {
    const Segment opened = Segment::open(name, false, kMiB);
    opened.data()[100] = std::byte{7};
  });
  EXPECT_EQ(child.join(), "");
  EXPECT_EQ(segment.data()[100], std::byte{7});
}

TEST_F(SegmentTest, CanBeReadButNotReservedWhenOpenedReadOnly) {
  Segment segment = Segment::create(name, 4096);
  segment.reserve(0, 4096);
  segment.data()[3] = std::byte{9};
  Segment opened = Segment::open(name, true, 4096);
  EXPECT_TRUE(opened.read_only());
  EXPECT_EQ(opened.data()[3], std::byte{9});
  expect_error(Errc::invalid_argument, {"read-only"}, [&] { opened.reserve(0, 1); });
}

TEST_F(SegmentTest, OutlivesItsName) {
  Segment segment = Segment::create(name, 4096);
  segment.reserve(0, 4096);
  EXPECT_TRUE(Segment::remove(name));
  EXPECT_FALSE(Segment::remove(name));
  segment.data()[0] = std::byte{1};
  expect_error(Errc::not_found, {name}, [&] { Segment::open(name, false, 1); });
}

TEST_F(SegmentTest, NamesTheOwnerAndTheAgeOfWhatIsInTheWay) {
  const Segment segment = Segment::create(name, 4096);
  expect_error(Errc::io, {name, fmt::format("user {}", geteuid()), " s ago"},
               [&] { Segment::create(name, 4096); });
}

TEST_F(SegmentTest, RefusesNamesThatArentOneFileName) {
  for (const char* bad : {"", "a/b", "../shm", ".hidden"}) {
    expect_error(Errc::invalid_argument, {bad}, [&] { Segment::create(bad, 4096); });
    expect_error(Errc::invalid_argument, {bad}, [&] { Segment::open(bad, true, 1); });
  }
}

TEST_F(SegmentTest, RefusesToOpenWhatOthersMayTouch) {
  plant(0640, 4096);
  expect_error(Errc::corrupt, {name, "0600"}, [&] { Segment::open(name, true, 1); });
}

TEST_F(SegmentTest, RefusesToOpenAnotherUsersFile) {
  plant(0600, 4096);
  if (chown(path.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give a file away";
  expect_error(Errc::corrupt, {"of user 65534"}, [&] { Segment::open(name, true, 1); });
}

TEST_F(SegmentTest, RefusesToOpenAFifoWithoutWaitingOnIt) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_error(Errc::corrupt, {"plain file"}, [&] { Segment::open(name, true, 1); });
}

TEST_F(SegmentTest, RefusesToOpenALink) {
  ASSERT_EQ(symlink("/etc/hostname", path.c_str()), 0);
  expect_error(Errc::corrupt, {"plain file"}, [&] { Segment::open(name, true, 1); });
}

TEST_F(SegmentTest, RefusesToOpenWhatIsTooSmall) {
  plant(0600, 100);
  expect_error(Errc::corrupt, {"101", "100"}, [&] { Segment::open(name, true, 101); });
}

TEST_F(SegmentTest, RefusesToOpenAnEmptyFile) {
  plant(0600, 0);
  expect_error(Errc::corrupt, {name}, [&] { Segment::open(name, true, 0); });
}

TEST_F(SegmentTest, ListsNamesByPrefix) {
  const Segment segment = Segment::create(name, 4096);
  EXPECT_EQ(Segment::list(name.substr(0, name.size() - 1)), std::vector<std::string>{name});
  EXPECT_TRUE(Segment::list(name + "-").empty());
}

/// In namespaces of its own, with a /dev/shm of 1 MiB.
void in_small_shm(const std::function<void()>& body) {
  const auto write = [](const char* file, const std::string& text) {
    return static_cast<bool>((std::ofstream(file) << text).flush());
  };
  const std::string same_user = fmt::format("{0} {0} 1", geteuid());
  const std::string same_group = fmt::format("{0} {0} 1", getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !write("/proc/self/setgroups", "deny") ||
      !write("/proc/self/uid_map", same_user) || !write("/proc/self/gid_map", same_group) ||
      mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m,mode=1777") != 0) {
    throw std::runtime_error("skip");
  }
  body();
}

TEST_F(SegmentTest, SaysHowToEnlargeAFullFolderAndChangesNothing) {
  ChildProcess child([this] {
    in_small_shm([this] {
      Segment segment = Segment::create(name, 64 * kMiB);
      segment.reserve(0, 4096);
      segment.data()[0] = std::byte{5};
      try {
        segment.reserve(0, 2 * kMiB);
        throw std::runtime_error("reserved more than there is");
      } catch (const Error& error) {
        const std::string message = error.what();
        for (const char* word : {"2097152 bytes", "1044480 of 1048576 bytes free",
                                 "remount,size=3m", "--shm-size=3m"}) {
          if (message.find(word) == std::string::npos) {
            throw std::runtime_error(fmt::format("'{}' isn't in: {}", word, message));
          }
        }
        if (error.code() != Errc::no_space) throw std::runtime_error("not no_space");
      }
      segment.reserve(4096, kMiB - 4096);  // the rest is still there
      if (segment.data()[0] != std::byte{5}) throw std::runtime_error("contents lost");
    });
  });
  const std::string text = child.join();
  if (text == "skip") GTEST_SKIP() << "no right to mount in a namespace of its own";
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace weft
