#include "actors/link/tls_bridge.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "actors/link/certificate_context.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/tls_stranger.hpp"

namespace weft::tls_bridge_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

std::string random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Owns a blocking file descriptor.
class End {
 public:
  explicit End(int fd) : fd_(fd) {}
  End(End&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~End() { hang_up(); }

  void hang_up() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int fd() const { return fd_; }
  void end_writing() const { ::shutdown(fd_, SHUT_WR); }
  void say(std::string_view words) const {
    while (!words.empty()) {
      const ssize_t count = ::send(fd_, words.data(), words.size(), MSG_NOSIGNAL);
      ASSERT_GT(count, 0);
      words.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  std::string hear(std::size_t bytes) const {
    std::string heard(bytes, '\0');
    const ssize_t count = ::recv(fd_, heard.data(), bytes, MSG_WAITALL);
    heard.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return heard;
  }
  std::string hear_all() const {
    std::string heard;
    for (std::string some = hear(1 << 16); !some.empty(); some = hear(1 << 16)) heard += some;
    return heard;
  }

 private:
  int fd_;
};

class TlsBridgeTest : public ::testing::Test {
 protected:
  ~TlsBridgeTest() override { fs::remove_all(folder_); }

  struct Sessions {
    TlsSession server;
    TlsSession client;
  };
  struct Ends {
    End here;
    End there;
  };

  /// Returns the sessions of both sides of a socket pair, after their handshake.
  Sessions sessions() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    Sessions made{TlsSession(server_, fds[0]), TlsSession(client_, fds[1])};
    auto server = TlsProgress::wants_read;
    auto client = TlsProgress::wants_read;
    while (server != TlsProgress::done || client != TlsProgress::done) {
      client = made.client.handshake();
      server = made.server.handshake();
    }
    return made;
  }
  /// Returns the unencrypted ends of a connection that goes through both bridges.
  Ends connect() {
    Sessions made = sessions();
    return {End(here_.add(std::move(made.server))), End(there_.add(std::move(made.client)))};
  }

  std::string folder_ = "/tmp/weft-bridge-" + testing::unique_job();
  testing::Authority authority_{"ours"};
  TlsConfig tls_ = authority_.issue(folder_, "node");
  TlsContext server_ = certificate_context(tls_, TlsSide::server);
  TlsContext client_ = certificate_context(tls_, TlsSide::client);
  TlsBridge here_{hours(1)};
  TlsBridge there_{hours(1)};
};

constexpr std::size_t kMany = std::size_t{16} << 20;

TEST_F(TlsBridgeTest, BytesComeAsTheyWereBothWaysAtOnce) {
  const Ends ends = connect();
  const std::string up = random_bytes(kMany, 1);
  const std::string down = random_bytes(kMany + 1, 2);
  std::string up_heard;
  std::string down_heard;
  {
    std::jthread here_says([&] { ends.here.say(up); });
    std::jthread there_says([&] { ends.there.say(down); });
    std::jthread here_hears([&] { down_heard = ends.here.hear(down.size()); });
    up_heard = ends.there.hear(up.size());
  }
  EXPECT_TRUE(up_heard == up);
  EXPECT_TRUE(down_heard == down);
}

TEST_F(TlsBridgeTest, OneDirectionEndsWithoutTheOther) {
  const Ends ends = connect();
  ends.here.say("question");
  ends.here.end_writing();
  EXPECT_EQ(ends.there.hear_all(), "question");
  const std::string answer = random_bytes(kMany, 3);
  std::jthread there_says([&] {
    ends.there.say(answer);
    ends.there.end_writing();
  });
  EXPECT_TRUE(ends.here.hear_all() == answer);
}

TEST_F(TlsBridgeTest, WhatWasWrittenBeforeTheEndArrives) {
  Ends ends = connect();
  const std::string last = random_bytes(kMany, 4);
  std::jthread says([&] {
    ends.here.say(last);
    ends.here.hang_up();
    here_.close();
  });
  EXPECT_TRUE(ends.there.hear_all() == last);
  ends.there.hang_up();
}

TEST_F(TlsBridgeTest, ThePlainEndsCloseWithTheConnection) {
  Sessions lost = sessions();
  const End loser(here_.add(std::move(lost.server)));
  {
    const TlsSession dies = std::move(lost.client);  // ends without a closing message
  }
  EXPECT_EQ(loser.hear_all(), "");

  Sessions torn = sessions();
  const End victim(here_.add(std::move(torn.server)));
  const End garbage(::dup(torn.client.fd()));
  garbage.say(random_bytes(1000, 5));
  EXPECT_EQ(victim.hear_all(), "");
}

/// Returns a number of bytes that don't fit into the buffers of one bridge and one unencrypted end,
/// but fit if the socket pair between the sessions takes some of them too.
std::size_t more_than_room(int fd) {
  int buffer = 0;
  socklen_t size = sizeof buffer;
  ::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, &size);
  return static_cast<std::size_t>(buffer) + 2 * kBridgeBytes + (std::size_t{16} << 10);
}

/// The client sends its last bytes and closes before the bridge can send it anything.
TEST_F(TlsBridgeTest, WhatCameBeforeALossIsNotLostWithIt) {
  Sessions dying = sessions();
  const End survivor(here_.add(std::move(dying.server)));
  const std::string block = random_bytes(1 << 14, 8);
  std::size_t said = 0;
  for (const std::size_t enough = more_than_room(survivor.fd()); said < enough;) {
    std::size_t count = 0;
    dying.client.write(block, count);
    said += count;
  }
  { const TlsSession dies = std::move(dying.client); }
  survivor.say("too late");
  for (int unread = 1; unread != 0; ::ioctl(survivor.fd(), TIOCOUTQ, &unread)) {
    std::this_thread::yield();
  }
  EXPECT_EQ(survivor.hear_all().size(), said);
}

TEST_F(TlsBridgeTest, WhoDoesNotReadHoldsNobodyElseUp) {
  const Ends slow = connect();
  const Ends quick = connect();
  const std::string much = random_bytes(kMany, 6);
  std::jthread says_to_slow([&] { slow.here.say(much); });
  {
    std::jthread says_to_quick([&] { quick.here.say(much); });
    EXPECT_TRUE(quick.there.hear(much.size()) == much);
  }
  EXPECT_TRUE(slow.there.hear(much.size()) == much);
}

TEST_F(TlsBridgeTest, SleepsWhereNothingCanMove) {
  const Ends ends = connect();
  // This connection is full because its peer doesn't read.
  Sessions full = sessions();
  const End writer(here_.add(std::move(full.server)));
  std::jthread blocked([&] { writer.say(random_bytes(kMany, 7)); });
  // The unencrypted end of this connection is closed, and its other side doesn't answer.
  Sessions unanswered = sessions();
  End closed(here_.add(std::move(unanswered.server)));
  closed.hang_up();
  // The other side has ended this connection, but the unencrypted end stays open.
  Sessions ended = sessions();
  const End stays(here_.add(std::move(ended.server)));
  EXPECT_EQ(ended.client.end_writing(), TlsProgress::done);
  EXPECT_EQ(stays.hear_all(), "");
  // Both sides have ended this connection. The client is gone before it learns that the server
  // ended too.
  Sessions crossed = sessions();
  End crosses(here_.add(std::move(crossed.server)));
  EXPECT_EQ(crossed.client.end_writing(), TlsProgress::done);
  EXPECT_EQ(crosses.hear_all(), "");
  { const TlsSession dies = std::move(crossed.client); }
  crosses.hang_up();
  // Nobody reads the bytes that arrive at this connection's unencrypted end.
  Sessions unread = sessions();
  const End deaf(here_.add(std::move(unread.server)));
  std::size_t count = 0;
  EXPECT_EQ(unread.client.write(std::string(1000, 'x'), count), TlsProgress::done);
  // The peer of this connection asks for new keys repeatedly, but there is no room for the answers.
  testing::KeyUpdater asks(server_, client_);
  while (::send(asks.server().fd(), "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) {
  }
  EXPECT_GT(asks.update(100), 1);
  const End asked(here_.add(std::move(asks.server())));

  constexpr int kPings = 300;
  const auto ping = [&] {
    ends.there.say("ping");
    EXPECT_EQ(ends.here.hear(4), "ping");
    ends.here.say("pong");
    EXPECT_EQ(ends.there.hear(4), "pong");
  };
  for (int i = 0; i < kPings; ++i) ping();  // until all connections have done what they can
  const std::uint64_t before = here_.wakes();
  for (int i = 0; i < kPings; ++i) ping();
  EXPECT_LT(here_.wakes() - before, 10U * kPings);

  // The blocked writer can end only after its bytes are read.
  char sink[1 << 14];
  for (std::size_t heard = 0; heard < kMany; heard += count) {
    if (full.client.read(sink, count) == TlsProgress::done) continue;
    pollfd wait{.fd = full.client.fd(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, -1);
  }
}

TEST_F(TlsBridgeTest, ClosingWaitsNoLongerThanItLingers) {
  TlsBridge brief(std::chrono::milliseconds(1));
  Sessions silent = sessions();
  End plain(brief.add(std::move(silent.server)));
  Sessions open = sessions();
  const End held(brief.add(std::move(open.server)));
  plain.hang_up();
  brief.close();
  brief.close();
  EXPECT_EQ(held.hear_all(), "");
}

}  // namespace
}  // namespace weft::tls_bridge_test
