/// Tests that strangers on either side of wires over TLS can only cause a line in the log.

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <openssl/ssl.h>

#include "tests/support/certificates.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/stranger.hpp"
#include "tests/support/wire_book.hpp"
#include "transport/wires/wire_address.hpp"
#include "transport/wires/wire_greeting.hpp"

namespace weft::tls_wires_test {
namespace {

using testing::TcpStranger;
using testing::WireBook;

std::uint16_t port_of(const Wires& wires) {
  WireAddress address = parse_wire_address(wires.address(), "address");
  return ntohs(reinterpret_cast<sockaddr_in&>(address.bytes).sin_port);
}

/// The server, which is member 2 and expects members 0 and 1 to dial, and the lines that it has
/// logged.
class Wired : public ::testing::Test {
 protected:
  void SetUp() override { begin(false); }
  void begin(bool later) {
    WireConfig config = WireBook::config(2);
    config.log = [this](const std::string& line) { lines.push_back(line); };
    server = make_tls_wires(config);
    server->connect(
        {{WireBook::end(0), "127.0.0.1:1", later}, {WireBook::end(1), "127.0.0.1:1", later}});
  }

  /// Makes a member that dials the server at an address.
  std::unique_ptr<Wires> dial(const WireConfig& config, const std::string& address) const {
    std::unique_ptr<Wires> wires = make_tls_wires(config);
    wires->connect({{WireBook::end(2), address}});
    return wires;
  }
  std::unique_ptr<Wires> dial(const WireConfig& config) const {
    return dial(config, server->address());
  }
  /// Lets the server and the others make progress until the condition holds.
  void go_on_until(std::string_view what, const std::function<bool()>& condition,
                   std::initializer_list<Wires*> others = {}) const {
    const auto deadline = std::chrono::steady_clock::now() + testing::kWirePatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) fail(Errc::timeout, "{}", what);
      bool has_moved = server->progress();
      for (Wires* wires : others) has_moved |= wires->progress();
      if (!has_moved) server->wait(std::chrono::milliseconds(1));
    }
  }
  void expect_member_0_gets_in() const {
    const std::unique_ptr<Wires> member = dial(WireBook::config(0));
    go_on_until("member 0 is connected",
                [&] {
                  return member->status(0).state == WireState::up &&
                         server->status(0).state == WireState::up;
                },
                {member.get()});
    const std::string said = "hello";
    std::string heard(said.size(), ' ');
    server->receive(0, std::as_writable_bytes(std::span(heard)));
    member->send(0, std::as_bytes(std::span(said)));
    go_on_until("the words arrive", [&] { return server->status(0).receives == 0; },
                {member.get()});
    EXPECT_EQ(heard, said);
  }
  bool has_logged(std::string_view words) const {
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
  }

  std::vector<std::string> lines;
  std::unique_ptr<Wires> server;
};

TEST_F(Wired, AreNotReachedByGarbage) {
  const TcpStranger web(port_of(*server));
  web.say("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  const TcpStranger leaves(port_of(*server));
  { const TcpStranger closed(port_of(*server)); }
  go_on_until("the strangers are refused", [&] {
    return has_logged("closed the connection") && has_logged("the TLS handshake failed");
  });
  expect_member_0_gets_in();
}

TEST_F(Wired, AreNotReachedWithAnotherSecret) {
  WireConfig config = WireBook::config(0);
  config.secret.back() = 'x';
  const std::unique_ptr<Wires> stranger = dial(config);
  go_on_until(
      "the stranger is refused",
      [&] { return has_logged("the TLS handshake failed") && !stranger->status(0).why.empty(); },
      {stranger.get()});
  EXPECT_EQ(stranger->status(0).state, WireState::connecting);
  expect_member_0_gets_in();
}

TEST_F(Wired, AreReachedBeforeMoreSilentStrangersThanTheyServe) {
  std::vector<TcpStranger> silent;
  for (int i = 0; i < 300; ++i) silent.emplace_back(port_of(*server));
  expect_member_0_gets_in();
  EXPECT_TRUE(has_logged("didn't greet in time while many others waited"));
  EXPECT_LT(lines.size(), 10U) << "a line for each kind of stranger, not for each stranger";
}

TEST_F(Wired, TellWhichIdentityDiffers) {
  WireConfig config = WireBook::config(0);
  ++config.generation;
  const std::unique_ptr<Wires> old = dial(config);
  go_on_until("the generation is refused", [&] { return has_logged("the generation of"); },
              {old.get()});
  config = WireBook::config(0);
  config.self.chip = 1;
  const std::unique_ptr<Wires> other = dial(config);
  go_on_until("the sender is refused", [&] { return has_logged("the sender of"); }, {other.get()});
  expect_member_0_gets_in();
}

TEST_F(Wired, AcceptAMemberOnlyOnce) {
  const std::unique_ptr<Wires> first = dial(WireBook::config(0));
  go_on_until("the first is connected", [&] { return server->status(0).state == WireState::up; },
              {first.get()});
  const std::unique_ptr<Wires> second = dial(WireBook::config(0));
  go_on_until("the second is refused", [&] { return has_logged("is connected already"); },
              {first.get(), second.get()});
  EXPECT_EQ(server->status(0).state, WireState::up);
  EXPECT_EQ(second->status(0).state, WireState::connecting);
}

class WiredLater : public Wired {
 protected:
  void SetUp() override { begin(true); }
};

TEST_F(WiredLater, LookAtTheirDoorOnlyWhileAWireConnects) {
  const TcpStranger web(port_of(*server));
  web.say("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  const std::unique_ptr<Wires> member = dial(WireBook::config(0));
  for (int i = 0; i < 20; ++i) {
    member->progress();
    EXPECT_FALSE(server->progress());
    server->wait(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(lines.empty());
  EXPECT_EQ(member->status(0).state, WireState::connecting);
  const std::byte said{5};
  std::byte heard{};
  member->send(0, {&said, 1});
  server->receive(0, {&heard, 1});
  go_on_until("the byte arrives", [&] { return server->status(0).receives == 0; }, {member.get()});
  EXPECT_EQ(heard, said);
  EXPECT_TRUE(has_logged("the TLS handshake failed"));
  EXPECT_EQ(server->status(1).state, WireState::idle);
}

/// Passes bytes on between a dialling member and the server, and records what the member sends.
class Proxy {
 public:
  explicit Proxy(std::uint16_t server) : server_(server) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 1);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Proxy() {
    ::close(listener_);
    if (member_ >= 0) ::close(member_);
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  const std::string& recorded() const { return recorded_; }
  void pass() {
    if (member_ < 0) {
      member_ = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      return;
    }
    recorded_ += move(member_, server_.fd());
    move(server_.fd(), member_);
  }

 private:
  static std::string move(int from, int to) {
    char bytes[4096];
    const ssize_t count = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0) return {};
    ::send(to, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
    return {bytes, static_cast<std::size_t>(count)};
  }

  TcpStranger server_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  int member_ = -1;
  std::string recorded_;
};

TEST_F(Wired, AreNotReachedByAReplay) {
  Proxy proxy(port_of(*server));
  const std::unique_ptr<Wires> member = dial(WireBook::config(0), proxy.address());
  go_on_until("member 0 is connected through the proxy",
              [&] {
                proxy.pass();
                return member->status(0).state == WireState::up;
              },
              {member.get()});
  ASSERT_EQ(server->status(0).state, WireState::up);
  const TcpStranger replay(port_of(*server));
  ASSERT_EQ(replay.say(proxy.recorded()), proxy.recorded().size());
  go_on_until("the replay is refused", [&] { return has_logged("the TLS handshake failed"); });
  EXPECT_EQ(server->status(0).state, WireState::up);
  EXPECT_EQ(server->status(1).state, WireState::connecting);
}

/// A server that has a certificate but not the secret must not be taken for a peer.
TEST(TlsWires, DontBelieveACertificate) {
  const std::string folder = "/tmp/weft-wires-" + testing::unique_job();
  const TlsConfig files = testing::Authority("any").issue(folder, "node");
  const TlsContext context(TlsSide::server);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  ASSERT_EQ(SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM), 1);
  std::filesystem::remove_all(folder);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const std::unique_ptr<Wires> member = make_tls_wires(WireBook::config(0));
  member->connect({{WireBook::end(2), fmt::format("127.0.0.1:{}", ntohs(address.sin_port))}});
  std::unique_ptr<WireGreeting> greeting;
  const auto deadline = std::chrono::steady_clock::now() + testing::kWirePatience;
  while (member->status(0).why.find("TLS handshake failed") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << member->status(0).why;
    ASSERT_NE(member->status(0).state, WireState::up);
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) greeting = std::make_unique<WireGreeting>(context, fd);
    if (greeting) greeting->progress([](const WirePreamble& received) { return received; });
    member->progress();
  }
  ::close(listener);
}

TEST(TlsWires, RefuseConfigsByName) {
  const auto expect_named = [](std::string_view field, const auto& change) {
    WireConfig config = WireBook::config(0);
    change(config);
    testing::expect_error(Errc::invalid_argument, {field}, [&] { make_tls_wires(config); });
  };
  expect_named("wire secret", [](WireConfig& config) { config.secret = "short"; });
  expect_named("wire job", [](WireConfig& config) { config.job = ""; });
  expect_named("wire job", [](WireConfig& config) { config.job = "two words"; });
  expect_named("wire host", [](WireConfig& config) { config.host = "localhost"; });
  const std::unique_ptr<Wires> wires = make_tls_wires(WireBook::config(0));
  testing::expect_error(Errc::invalid_argument, {"chip 2 of worker 12", "ucx:"}, [&] {
    wires->connect({{WireBook::end(2), "ucx:..."}});
  });
}

}  // namespace
}  // namespace weft::tls_wires_test
