#include "transport/memory/segment.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/small_shm.hpp"
#include "transport/memory/huge_pages.hpp"

namespace weft::segment_test {
namespace {

using testing::ChildProcess;
using testing::expect_error;
using testing::in_own_shm;
using testing::unique_job;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A fixture with the name of a segment that doesn't exist yet. The segment is removed at the end
/// of a test.
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
  segment.reserve(5000, 10000);  // bytes 5000 to 14999 are in three pages
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_blocks * 512, 3 * 4096);
}

TEST_F(SegmentTest, ReservesWhatIsMissingBetweenReservedRanges) {
  Segment segment = Segment::create(name, kMiB);
  segment.reserve(0, 4096);
  segment.reserve(5 * 4096, 4096);
  segment.reserve(2 * 4096, 4096);
  segment.reserve(0, 6 * 4096);
  segment.reserve(4096, 100);  // within the range that is reserved already
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

TEST_F(SegmentTest, GrowsUnderThoseWhoHaveMappedIt) {
  Segment segment = Segment::create(name, 256 * kMiB);
  segment.reserve(0, 4096);
  const Segment other = Segment::open(name, false, 256 * kMiB);
  std::byte* const live = segment.data();
  std::byte* const seen = other.data();
  live[100] = std::byte{7};
  for (std::size_t end = kMiB; end <= 32 * kMiB; end *= 2) {
    segment.reserve(0, end);
    EXPECT_EQ(seen[end - 1], std::byte{0});
    live[end - 1] = std::byte{8};
    EXPECT_EQ(seen[end - 1], std::byte{8});
    EXPECT_EQ(seen[100], std::byte{7});
  }
  EXPECT_EQ(segment.data(), live);
  EXPECT_EQ(other.data(), seen);
}

/// The kernel's report about a mapping.
struct MappingFacts {
  std::size_t huge_kib = 0;  ///< KiB that are mapped as huge pages
  bool asked = false;        ///< huge pages were requested for it
};
MappingFacts facts_of(const void* begin) {
  MappingFacts facts;
  std::ifstream file("/proc/self/smaps");
  const std::string head = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(begin));
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(head)) here = true;
    if (!here) continue;
    if (line.starts_with("ShmemPmdMapped:")) facts.huge_kib = std::stoul(line.substr(15));
    if (line.starts_with("VmFlags:")) {
      facts.asked = line.find(" hg") != std::string::npos;
      return facts;
    }
  }
  ADD_FAILURE() << "no mapping begins at " << head;
  return facts;
}

TEST_F(SegmentTest, BeginsWhereAHugePageMayAndAsksForThem) {
  const Segment segment = Segment::create(name, 64 * kMiB);
  const Segment opened = Segment::open(name, false, 1);
  const Segment anonymous = Segment::anonymous(64 * kMiB + 4096);
  for (const Segment* mapped : {&segment, &opened, &anonymous}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped->data()) % kHugePageBytes, 0U);
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0) {
      EXPECT_TRUE(facts_of(mapped->data()).asked);
    }
  }
}

/// Returns how often the system had no huge page for a file in shared memory.
std::size_t fallback_count() {
  std::ifstream file("/proc/vmstat");
  std::string key;
  for (std::size_t value = 0; file >> key >> value;) {
    if (key == "thp_file_fallback") return value;
  }
  return 0;
}

TEST_F(SegmentTest, LiesOnHugePagesWhereTheFolderAllowsThem) {
  for (const std::string policy : {"never", "advise", "within_size", "always"}) {
    in_own_shm(fmt::format("size=32m,huge={}", policy), [&] {
      EXPECT_EQ(huge_pages_of_shm(), policy);
      const std::size_t fallbacks = fallback_count();
      Segment segment = Segment::create(name, 64 * kMiB);
      segment.reserve(4096, 16 * kMiB);
      std::memset(segment.data() + 4096, 1, 16 * kMiB);
      const std::size_t huge_kib = facts_of(segment.data()).huge_kib;
      if (policy == "never") {
        EXPECT_EQ(huge_kib, 0U);
      } else if (huge_kib == 0) {
        EXPECT_GT(fallback_count(), fallbacks) << policy;
      } else {
        EXPECT_GE(huge_kib, 2048U) << policy;
      }
      Segment::remove(name);
    });
  }
}

/// A request for huge pages may allocate them early, and then a reservation of the same bytes could
/// fail.
TEST_F(SegmentTest, AFolderWithHugePagesIsFullWithoutASignalToo) {
  for (const char* policy : {"advise", "within_size", "always"}) {
    in_own_shm(fmt::format("size=8m,huge={}", policy), [&] {
      Segment segment = Segment::create(name, 64 * kMiB);
      expect_error(Errc::no_space, {"16777216 bytes", "8388608 of 8388608 bytes free"},
                   [&] { segment.reserve(0, 16 * kMiB); });
      segment.reserve(0, 6 * kMiB);
      std::memset(segment.data(), 1, 6 * kMiB);
      expect_error(Errc::no_space, {"2097152 of 8388608 bytes free", "--shm-size=18m"},
                   [&] { segment.reserve(0, 10 * kMiB); });
      EXPECT_EQ(segment.data()[6 * kMiB - 1], std::byte{1});
      Segment::remove(name);
    });
  }
}

TEST_F(SegmentTest, PrefersTheNodeOfTheThreadThatSaysSo) {
  Segment segment = Segment::create(name, 64 * kMiB);
  const Segment opened = Segment::open(name, false, 1);
  const auto policy_of = [](const Segment& mapped) {
    int policy = -1;
    if (syscall(SYS_get_mempolicy, &policy, nullptr, 0, mapped.data(), MPOL_F_ADDR) != 0) return -1;
    return policy;
  };
  if (policy_of(segment) == -1) GTEST_SKIP() << "get_mempolicy isn't allowed";
  segment.prefer_this_node();
  EXPECT_EQ(policy_of(segment), MPOL_PREFERRED);
  EXPECT_EQ(policy_of(opened), MPOL_PREFERRED) << "is of the file";
  segment.reserve(0, 4 * kMiB);
  EXPECT_EQ(opened.data()[0], std::byte{0});
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

/// A job's id can't be guessed. But even a process that has guessed it gets no access to the
/// segment.
TEST_F(SegmentTest, TakesNoNameThatIsTaken) {
  const auto expect_refused = [this](std::string_view word) {
    expect_error(Errc::io, {path, "exists already", word, "rm " + path},
                 [this] { Segment::create(name, 4096); });
    struct stat status {};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << "what was in the way is gone";
    unlink(path.c_str());
  };
  const std::string own = fmt::format("user {}", geteuid());
  plant(0600, 4096);
  expect_refused(own);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused(own);
  ASSERT_EQ(symlink("/dev/shm/weft-nowhere", path.c_str()), 0);
  expect_refused(own);
  plant(0666, 4096);
  if (chown(path.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give a file away";
  expect_refused("user 65534");
}

TEST_F(SegmentTest, IsPrivateWhateverTheUmask) {
  for (const mode_t mask : {0U, 0777U}) {
    const mode_t before = umask(mask);
    const Segment segment = Segment::create(name, 4096);
    umask(before);
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode, S_IFREG | 0600U) << "umask " << mask;
    Segment::remove(name);
  }
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

TEST_F(SegmentTest, TakesAnEmptyFileForASegmentThatIsStillBeingMade) {
  plant(0600, 0);
  for (const std::size_t bytes_min : {std::size_t{0}, std::size_t{4096}}) {
    expect_error(Errc::not_found, {name, "is still being made"},
                 [&] { Segment::open(name, true, bytes_min); });
  }
}

TEST_F(SegmentTest, ListsNamesByPrefix) {
  const Segment segment = Segment::create(name, 4096);
  EXPECT_EQ(Segment::list(name.substr(0, name.size() - 1)), std::vector<std::string>{name});
  EXPECT_TRUE(Segment::list(name + "-").empty());
}

TEST_F(SegmentTest, SaysHowToEnlargeAFullFolderAndChangesNothing) {
  in_own_shm("size=1m", [this] {
    Segment segment = Segment::create(name, 64 * kMiB);
    segment.reserve(0, 4096);
    segment.data()[0] = std::byte{5};
    expect_error(Errc::no_space,
                 {path, "2097152 bytes", "1044480 of 1048576 bytes free", "remount,size=3m",
                  "--shm-size=3m"},
                 [&] { segment.reserve(0, 2 * kMiB); });
    segment.reserve(4096, kMiB - 4096);  // the rest can still be used
    EXPECT_EQ(segment.data()[0], std::byte{5});
    std::memset(segment.data(), 1, kMiB);
    expect_error(Errc::no_space, {"4096 bytes", "has 0 of", "size=2m"},
                 [&] { segment.reserve(kMiB, 4096); });
    Segment::remove(name);
  });
}

/// The kernel kills a process that makes a file grow beyond the limit of file sizes.
TEST_F(SegmentTest, NamesALimitOfFileSizesThatIsTooLow) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = kMiB;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  Segment::create(name, kMiB);
  Segment::remove(name);
  expect_error(Errc::no_space, {path, "1048577", "ulimit -f unlimited"},
               [&] { Segment::create(name, kMiB + 1); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(SegmentTest, SaysThatThereIsNoRoomForAnotherFile) {
  in_own_shm("size=1m,nr_inodes=2", [this] {
    const Segment segment = Segment::create(name, 4096);
    expect_error(Errc::no_space, {name + "-2", "nr_inodes=4"},
                 [&] { Segment::create(name + "-2", 4096); });
    Segment::remove(name);
  });
}

}  // namespace
}  // namespace weft::segment_test
