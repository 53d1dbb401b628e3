#include "actors/link/door.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "spmd/base/same_secret.hpp"

namespace weft::door_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";
constexpr DoorLimits kPatient{.patience = hours(1), .patience_when_full = hours(1)};

std::string socket_path() { return fmt::format("/tmp/weft-door-{}", ::getpid()); }

/// A client of the door. If the awaited answer doesn't come, its waits end only at the test's time
/// limit.
class Client {
 public:
  Client() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Client(std::string_view words) : Client() {
    connect();
    say(words);
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Client() { hang_up(); }

  void connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void say(std::string_view words) const {
    EXPECT_EQ(::send(fd_, words.data(), words.size(), MSG_NOSIGNAL), std::ssize(words));
  }
  void hang_up() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void wait_until_closed() const {
    char byte;
    EXPECT_LE(::recv(fd_, &byte, 1, 0), 0);
  }

 private:
  int fd_;
};

std::string preamble(std::string_view token = kToken) {
  const Preamble bytes = make_preamble(token);
  return {bytes.data(), bytes.size()};
}

std::string with_byte(std::string words, std::size_t at, char byte) {
  words[at] = byte;
  return words;
}

int wait_for_proven(Door& door) {
  pollfd wait{.fd = door.fd(), .events = POLLIN, .revents = 0};
  for (;;) {
    if (const int fd = door.take(); fd >= 0) return fd;
    ::poll(&wait, 1, -1);
  }
}

std::uint64_t count(const Door& door, Refusal refusal) {
  return door.refused()[static_cast<std::size_t>(refusal)];
}

std::uint64_t count(const Door& door) {
  const auto refused = door.refused();
  return std::accumulate(refused.begin(), refused.end(), std::uint64_t{0});
}

class DoorTest : public ::testing::Test {
 protected:
  ~DoorTest() override { ::unlink(socket_path().c_str()); }
};

TEST_F(DoorTest, HandsOverWhatHasProvenItselfAndReadsNothingBehindThat) {
  Door door(socket_path(), kToken, kPatient);
  const Client worker(preamble() + "BASP");
  const int fd = wait_for_proven(door);
  char rest[8];
  EXPECT_EQ(std::string_view(rest, static_cast<std::size_t>(::recv(fd, rest, sizeof rest, 0))),
            "BASP");
  ::close(fd);
  EXPECT_EQ(count(door), 0U);
  EXPECT_EQ(door.take(), -1);
}

TEST_F(DoorTest, APreambleMayComeByteForByte) {
  Door door(socket_path(), kToken, kPatient);
  const Client worker("");
  for (const char byte : preamble()) worker.say({&byte, 1});
  ::close(wait_for_proven(door));
}

TEST_F(DoorTest, EveryByteOfThePreambleCounts) {
  Door door(socket_path(), kToken, kPatient);
  const std::string right = preamble();
  for (std::size_t at = 0; at < kPreambleBytes; ++at) {
    Client(with_byte(right, at, static_cast<char>(right[at] ^ 1))).wait_until_closed();
  }
  EXPECT_EQ(count(door, Refusal::other_protocol), 8U);
  EXPECT_EQ(count(door, Refusal::other_version), 4U);
  EXPECT_EQ(count(door, Refusal::wrong_token), kTokenBytes);
  EXPECT_EQ(door.take(), -1);
}

TEST_F(DoorTest, EveryPreambleThatIsCutShortIsRefused) {
  Door door(socket_path(), kToken, kPatient);
  for (std::size_t bytes = 0; bytes < kPreambleBytes; ++bytes) {
    Client(preamble().substr(0, bytes)).hang_up();
  }
  Client worker(preamble());  // the door accepts this connection after all others
  ::close(wait_for_proven(door));
  door.close();
  EXPECT_EQ(count(door, Refusal::closed_early), kPreambleBytes);
}

TEST_F(DoorTest, SilenceHasAnEndAndKeepsNobodyOut) {
  Door door(socket_path(), kToken, {.patience = milliseconds(300)});
  const Client silent("");
  const Client slow("weft");
  const Client worker(preamble());
  ::close(wait_for_proven(door));
  silent.wait_until_closed();
  slow.wait_until_closed();
  EXPECT_EQ(count(door, Refusal::late), 2U);
}

/// A worker is let in although more silent clients are connected than the limit allows.
TEST_F(DoorTest, ACrowdMakesRoom) {
  Door door(socket_path(), kToken,
            {.unproven_count_max = 2, .patience = hours(1), .patience_when_full = milliseconds(1)});
  std::vector<Client> crowd;
  for (int i = 0; i < 10; ++i) crowd.emplace_back("");
  const Client worker(preamble());
  ::close(wait_for_proven(door));
  EXPECT_GE(count(door, Refusal::crowded), 9U);
}

TEST_F(DoorTest, LeavesMostDescriptorsToTheJob) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 100;
  ::setrlimit(RLIMIT_NOFILE, &few);
  Door door(socket_path(), kToken, {.patience = hours(1), .patience_when_full = milliseconds(1)});
  std::vector<Client> crowd;
  for (int i = 0; i < 25; ++i) crowd.emplace_back("");
  crowd.front().wait_until_closed();
  EXPECT_GE(count(door, Refusal::crowded), 1U);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(DoorTest, OutlivesALackOfDescriptors) {
  Door door(socket_path(), kToken, {.patience_when_full = milliseconds(1)});
  Client worker;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int lowest_free = ::fcntl(0, F_DUPFD, 0);
  ::close(lowest_free);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  ::setrlimit(RLIMIT_NOFILE, &none);
  worker.connect();
  worker.say(preamble());
  EXPECT_EQ(door.take(), -1);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ::close(wait_for_proven(door));
}

TEST_F(DoorTest, KeepsNoDescriptorOfWhoHungUp) {
  Door door(socket_path(), kToken, kPatient);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto come_and_go = [&] {
    Client worker(preamble());
    ::close(wait_for_proven(door));
  };
  come_and_go();
  const auto before = open_files();
  for (int i = 0; i < 20; ++i) come_and_go();
  EXPECT_EQ(open_files(), before);
}

TEST_F(DoorTest, ClosingEndsWhatWaits) {
  Door door(socket_path(), kToken, kPatient);
  const Client silent("");
  const Client worker(preamble());
  pollfd proven{.fd = door.fd(), .events = POLLIN, .revents = 0};
  ::poll(&proven, 1, -1);
  door.close();
  door.close();
  silent.wait_until_closed();
  worker.wait_until_closed();  // nobody has called take() for this connection
  EXPECT_EQ(door.take(), -1);
}

TEST_F(DoorTest, SaysOfEachKindOnceAndCounts) {
  const std::string log = socket_path() + ".log";
  const LogScope scope(JobLog::open({.who = "trainer", .file = log}));
  {
    Door door(socket_path(), kToken, kPatient);
    for (int i = 0; i < 3; ++i) Client(std::string(100, 'x')).wait_until_closed();
    for (int i = 0; i < 2; ++i) Client(preamble(std::string(32, '0'))).wait_until_closed();
  }
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto times = [&](const std::string& words) {
    int found = 0;
    for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(times("refused a connection (no preamble of weft)"), 1) << text;
  EXPECT_EQ(times("refused a connection (a wrong token)"), 1) << text;
  EXPECT_EQ(times(fmt::format("uid {}, pid {}", ::geteuid(), ::getpid())), 2) << text;
  EXPECT_EQ(times("total of refused connections: 3 (no preamble of weft), 2 (a wrong token)"), 1)
      << text;
  std::filesystem::remove(log);
}

TEST_F(DoorTest, IsOfThisUserAlone) {
  const Door door(socket_path(), kToken, kPatient);
  struct stat status {};
  ASSERT_EQ(::stat(socket_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

Errc code_of(const std::string& path, std::string_view token) {
  try {
    const Door door(path, token, kPatient);
  } catch (const Error& e) {
    return e.code();
  }
  return Errc::cancelled;
}

TEST_F(DoorTest, RefusesWhatItCannotListenAt) {
  EXPECT_EQ(code_of("/tmp/" + std::string(200, 'x'), kToken), Errc::invalid_argument);
  EXPECT_EQ(code_of("/nowhere/control", kToken), Errc::io);
  EXPECT_EQ(code_of(socket_path(), "short"), Errc::invalid_argument);
}

TEST(Secret, IsTheSameOnlyByteForByte) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* other : {"", "ab", "abd", "bbc", "abcd"}) {
    EXPECT_FALSE(same_secret(other, "abc")) << other;
  }
}

}  // namespace
}  // namespace weft::door_test
