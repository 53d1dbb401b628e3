#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "actors/link/certificate_context.hpp"
#include "actors/link/door.hpp"
#include "actors/link/tls_sockets.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tls_stranger.hpp"

namespace weft::tls_door_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::Authority;
using testing::expect_error;
using testing::TcpStranger;

constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";
constexpr DoorLimits kPatient{.patience = hours(1), .patience_when_full = hours(1)};

std::string preamble(std::string_view token = kToken) {
  const Preamble bytes = make_preamble(token);
  return {bytes.data(), bytes.size()};
}

class TlsDoorTest : public ::testing::Test {
 protected:
  TlsDoorTest() { ::signal(SIGPIPE, SIG_IGN); }  // the sockets in answer_to() may raise SIGPIPE
  ~TlsDoorTest() override { fs::remove_all(folder); }

  void open(const DoorLimits& limits = kPatient) {
    const TlsListener listener = listen_tls({.host = "127.0.0.1", .port = 0});
    address.port = listener.port;
    door.emplace(TlsEntrance{listener.fd, certificate_context(ours, TlsSide::server), bridge},
                 kToken, limits);
  }
  std::uint64_t count(Refusal refusal) const {
    return door->refused()[static_cast<std::size_t>(refusal)];
  }
  std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const auto refused : door->refused()) all += refused;
    return all;
  }
  /// Waits until the door has refused this number of connections.
  void wait_for_refusals(std::uint64_t expected) const {
    while (count() < expected) std::this_thread::yield();
  }
  /// Starts a thread that sends "welcome" to the next connection that the door accepts.
  std::jthread greet() {
    return std::jthread([this] {
      pollfd wait{.fd = door->fd(), .events = POLLIN, .revents = 0};
      int fd = door->take();
      for (; fd < 0; fd = door->take()) ::poll(&wait, 1, -1);
      EXPECT_EQ(::send(fd, "welcome", 7, MSG_NOSIGNAL), 7);
      ::close(fd);
    });
  }
  TlsSession dial(const TlsConfig& tls, const std::string& words) const {
    return dial_tls(address, certificate_context(tls, TlsSide::client), words,
                    std::chrono::seconds(30));
  }
  std::string answer(const TlsConfig& tls, const std::string& words = preamble()) const {
    return testing::answer_to(address.port, tls.certificate, tls.key, words);
  }

  std::string folder = "/tmp/weft-tls-door-" + testing::unique_job();
  Authority authority{"ours"};
  TlsConfig ours = authority.issue(folder, "node");
  TlsAddress address{.host = "127.0.0.1"};
  std::shared_ptr<TlsBridge> bridge = std::make_shared<TlsBridge>();
  std::optional<Door> door;
};

TEST_F(TlsDoorTest, AWorkerComesInAndIsAnswered) {
  open();
  const auto greeter = greet();
  TlsBridge own;
  const int fd = own.add(dial(ours, preamble()));
  char heard[8];
  EXPECT_EQ(std::string_view(heard, static_cast<std::size_t>(::recv(fd, heard, 8, MSG_WAITALL))),
            "welcome");
  ::close(fd);
  EXPECT_EQ(count(), 0U);
}

TEST_F(TlsDoorTest, WithoutAGoodCertificateNobodyComesIn) {
  open();
  EXPECT_EQ(answer({}), "");
  EXPECT_EQ(answer(Authority("theirs").issue(folder + "/theirs", "x")), "");
  EXPECT_EQ(answer(authority.issue(folder, "served", {.usage = "serverAuth"})), "");
  EXPECT_EQ(answer(authority.issue(folder, "old", {.from_days = -9, .to_days = -1})), "");
  EXPECT_EQ(answer(authority.issue(folder, "new", {.from_days = 1, .to_days = 9})), "");
  wait_for_refusals(5);
  EXPECT_EQ(count(Refusal::no_certificate), 1U);
  EXPECT_EQ(count(Refusal::foreign_certificate), 2U);
  EXPECT_EQ(count(Refusal::outdated_certificate), 2U);
  EXPECT_EQ(door->take(), -1);
}

TEST_F(TlsDoorTest, ACertificateWithoutTheTokenIsNotEnough) {
  open();
  EXPECT_EQ(answer(ours, preamble(std::string(kTokenBytes, 'f'))), "");
  EXPECT_EQ(answer(ours, std::string(kPreambleBytes, 'x')), "");
  wait_for_refusals(2);
  EXPECT_EQ(count(Refusal::wrong_token), 1U);
  EXPECT_EQ(count(Refusal::other_protocol), 1U);
  expect_error(Errc::io, {"closed the connection without an answer", "WEFT_JOB_TOKEN"},
               [&] { dial(ours, preamble(std::string(kTokenBytes, 'f'))); });
  const auto greeter = greet();
  EXPECT_EQ(answer(ours), "welcome");
}

TEST_F(TlsDoorTest, WhatIsNotTlsIsRefused) {
  open();
  std::vector<TcpStranger> strangers;
  for (const std::string& words : {preamble() + preamble(), std::string("GET / HTTP/1.1\r\n\r\n"),
                                   std::string(1000, '\x16')}) {
    strangers.emplace_back(address.port).say(words);
  }
  wait_for_refusals(3);
  EXPECT_EQ(count(Refusal::no_tls), 3U);
  TcpStranger(address.port).say("\x16\x03\x01");
  wait_for_refusals(4);
  EXPECT_EQ(count(Refusal::closed_early), 1U);
}

TEST_F(TlsDoorTest, SilenceKeepsNobodyOut) {
  open({.unproven_count_max = 2, .patience = hours(1), .patience_when_full = milliseconds(100)});
  std::vector<TcpStranger> crowd;
  for (int i = 0; i < 6; ++i) crowd.emplace_back(address.port);
  const auto greeter = greet();
  EXPECT_EQ(answer(ours), "welcome");
  EXPECT_GE(count(Refusal::crowded), 5U);
}

TEST_F(TlsDoorTest, SilenceHasAnEnd) {
  open({.patience = milliseconds(50)});
  const TcpStranger silent(address.port);
  wait_for_refusals(1);
  EXPECT_EQ(count(Refusal::late), 1U);
}

/// Connections that send no complete TLS message fill the queue of the listening socket.
TEST_F(TlsDoorTest, ACrowdThatFillsTheQueueKeepsNobodyOut) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit most = before;
  most.rlim_cur = most.rlim_max;
  if (most.rlim_max < SOMAXCONN + 512) GTEST_SKIP() << "ulimit -Hn is below " << SOMAXCONN + 512;
  ::setrlimit(RLIMIT_NOFILE, &most);
  open(kTlsDoorLimits);
  std::vector<TcpStranger> crowd;
  for (int i = 0; i < SOMAXCONN; ++i) crowd.emplace_back(address.port).say("\x16\x03\x01");
  const auto greeter = greet();
  dial(ours, preamble());
  crowd.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(TlsDoorTest, AWorkerComesAgainWhereThereWasNoTimeForIt) {
  const TlsListener listener = listen_tls({.host = "127.0.0.1", .port = 0});
  address.port = listener.port;
  const std::jthread busy([&] {
    for (int i = 0; i < 9;) {
      if (const int fd = ::accept(listener.fd, nullptr, nullptr); fd >= 0) i += ::close(fd) == 0;
    }
    door.emplace(TlsEntrance{listener.fd, certificate_context(ours, TlsSide::server), bridge},
                 kToken, kPatient);
    const auto greeter = greet();
  });
  dial(ours, preamble());
}

int option_of(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(fd, level, name, &value, &size);
  return value;
}

void expect_notices_a_dead_host(int fd) {
  EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 60'000);
}

/// Returns this process's descriptor of the other end of a connection.
int other_end(int fd) {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size);
  for (int other = 0; other < 4096; ++other) {
    sockaddr_in peer{};
    size = sizeof peer;
    const bool connected = ::getpeername(other, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (connected && peer.sin_family == AF_INET && peer.sin_port == own.sin_port) return other;
  }
  return -1;
}

TEST_F(TlsDoorTest, BothSidesNoticeADeadHost) {
  open();
  {
    const auto greeter = greet();
    expect_notices_a_dead_host(dial(ours, preamble()).fd());
  }
  const TcpStranger silent(address.port);
  int accepted = -1;
  while (accepted < 0) accepted = other_end(silent.fd());
  expect_notices_a_dead_host(accepted);
}

TEST_F(TlsDoorTest, AnAddressMayBeOfIpv6) {
  address = parse_tls_address("[::1]:0", "backend.tls.listen");
  const TlsListener listener = listen_tls(address);
  address.port = listener.port;
  door.emplace(TlsEntrance{listener.fd, certificate_context(ours, TlsSide::server), bridge}, kToken,
               kPatient);
  const auto greeter = greet();
  dial(ours, preamble());
  expect_error(Errc::io, {fmt::format("backend.tls.listen = \"[::1]:{}\"", listener.port)},
               [&] { listen_tls(address); });
}

TEST_F(TlsDoorTest, WhoHasNoDescriptorLeftIsTold) {
  open();
  const TlsContext context = certificate_context(ours, TlsSide::client);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  const int lowest_free = ::fcntl(0, F_DUPFD, 0);
  ::close(lowest_free);
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  ::setrlimit(RLIMIT_NOFILE, &none);
  expect_error(Errc::io, {"127.0.0.1", "Too many open files"},
               [&] { dial_tls(address, context, preamble(), std::chrono::seconds(30)); });
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(TlsDoorTest, ADoorThatCannotBeMadeLeavesNoSocket) {
  const TlsListener listener = listen_tls({.host = "127.0.0.1", .port = 0});
  expect_error(Errc::invalid_argument, {"WEFT_JOB_TOKEN", "5 characters"}, [&] {
    const Door none(TlsEntrance{listener.fd, certificate_context(ours, TlsSide::server), bridge},
                    "short");
  });
  EXPECT_EQ(::fcntl(listener.fd, F_GETFD), -1);
}

TEST_F(TlsDoorTest, AWorkerGoesToNobodyElse) {
  open();
  const TlsConfig theirs = Authority("theirs").issue(folder + "/theirs", "x");
  expect_error(Errc::io, {"127.0.0.1", "certificate", "backend.tls", "one CA"},
               [&] { dial(theirs, preamble()); });
  expect_error(Errc::unavailable, {"Connection refused"}, [&] {
    TlsAddress nobody = address;
    nobody.port = 1;
    dial_tls(nobody, certificate_context(ours, TlsSide::client), preamble(),
             std::chrono::seconds(30));
  });
  const TlsListener silent = listen_tls({.host = "127.0.0.1", .port = 0});
  expect_error(Errc::timeout, {"no answer", "50 ms"}, [&] {
    dial_tls({.host = "127.0.0.1", .port = silent.port}, certificate_context(ours, TlsSide::client),
             preamble(), milliseconds(50));
  });
  expect_error(Errc::io, {"backend.tls.listen", "Address already in use"},
               [&] { listen_tls({.host = "127.0.0.1", .port = silent.port}); });
  ::close(silent.fd);
}

}  // namespace
}  // namespace weft::tls_door_test
