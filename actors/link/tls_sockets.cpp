#include "actors/link/tls_sockets.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// A door with too many connections closes some of them. If it closes a worker's connection during
/// the handshake, the worker dials again after kPauseMs, until the deadline. If it closes the
/// connection after the preamble, the reason may be a wrong token, so the worker dials at most
/// kDials times.
constexpr int kDials = 3;
constexpr int kPauseMs = 20;

constexpr int kIdleSeconds = 30;
constexpr int kProbeSeconds = 10;
constexpr int kProbes = 3;

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const TlsAddress& address, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), fmt::format("{}", address.port).c_str(), &hints, &found);
  if (error != 0) {
    fail(Errc::io, "tls://{}: {}; name a host that this host can resolve", to_string(address),
         ::gai_strerror(error));
  }
  return Addresses(found);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

/// Waits for the events on `fd`. Returns false if the deadline has passed.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  pollfd wait{.fd = fd, .events = events, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready != 0;
}

/// The arguments of dial_tls(), and the deadline that its timeout gives.
struct Dial {
  const TlsAddress& address;
  const TlsContext& context;
  std::string_view words;
  std::chrono::milliseconds timeout;
  Clock::time_point deadline;

  [[noreturn]] void late() const {
    fail(Errc::timeout, "no answer from the trainer at tls://{} for {} ms", to_string(address),
         timeout.count());
  }
  /// Returns when to try the next address if address `at` hasn't answered.
  Clock::time_point share(const addrinfo* at) const {
    int addresses = 0;
    for (; at != nullptr; at = at->ai_next) ++addresses;
    return Clock::now() + (deadline - Clock::now()) / addresses;
  }
};

int connect(const Dial& dial) {
  const Addresses addresses = look_up(dial.address, false);
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    const int fd =
        ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    error = fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (wait_for(fd, POLLOUT, dial.share(at))) {
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      } else {
        error = ETIMEDOUT;
      }
    }
    if (error == 0) return fd;
    if (fd >= 0) ::close(fd);
  }
  if (Clock::now() >= dial.deadline) dial.late();
  if (error == ECONNREFUSED) {
    fail(Errc::unavailable, "control socket tls://{}: {}", to_string(dial.address),
         std::strerror(error));
  }
  fail(Errc::io, "control socket tls://{}: {}; correct the address, or open its port in firewalls",
       to_string(dial.address), std::strerror(error));
}

/// Repeats the call until TLS has completed it. Returns false if the other side has closed the
/// connection.
bool complete(const Dial& dial, const TlsSession& tls, const std::function<TlsProgress()>& call) {
  for (;;) {
    short events = POLLIN;
    switch (call()) {
      case TlsProgress::done: return true;
      case TlsProgress::wants_read: break;
      case TlsProgress::wants_write: events = POLLOUT; break;
      case TlsProgress::ended:
      case TlsProgress::lost: return false;
      case TlsProgress::failed:
        fail(Errc::io,
             "the trainer at tls://{} and this process don't accept each other: {}; give both of "
             "them backend.tls files of one CA, or, for several hosts, the same WEFT_SECRET_FILE",
             to_string(dial.address), tls.why());
    }
    if (!wait_for(tls.fd(), events, dial.deadline)) dial.late();
  }
}

TlsSession shake_hands(const Dial& dial) {
  for (;;) {
    const int fd = connect(dial);
    TlsSession tls(dial.context, fd);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    notice_dead_host(fd);
    if (complete(dial, tls, [&] { return tls.handshake(); })) return tls;
    if (Clock::now() >= dial.deadline) dial.late();
    ::poll(nullptr, 0, kPauseMs);
  }
}

/// Connects, sends dial.words and waits for an answer. Returns nothing if the other side has closed
/// the connection.
std::optional<TlsSession> try_once(const Dial& dial) {
  TlsSession tls = shake_hands(dial);
  for (std::string_view rest = dial.words; !rest.empty();) {
    std::size_t count = 0;
    if (!complete(dial, tls, [&] { return tls.write(rest, count); })) return {};
    rest.remove_prefix(count);
  }
  if (!complete(dial, tls, [&] { return tls.peek(); })) return {};
  return tls;
}

}  // namespace

void notice_dead_host(int fd) {
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  // Keepalive doesn't probe while sent bytes are unacknowledged, so a dead host could stay
  // unnoticed for a quarter of an hour without this limit.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, (kIdleSeconds + kProbes * kProbeSeconds) * 1000);
}

TlsListener listen_tls(const TlsAddress& address, const PortRange& ports, std::string_view field) {
  const Addresses addresses = look_up(address, true);
  WireAddress at;
  std::memcpy(at.get(), addresses->ai_addr, addresses->ai_addrlen);
  at.size = addresses->ai_addrlen;
  const int fd = listen_at(at, ports);
  if (fd < 0) {
    const std::string why = std::strerror(errno);
    if (!ports.is_any() && address.port == 0) {
      fail(Errc::io,
           "backend.ports = \"{}\": the trainer can't listen at a port of {}: {}; give "
           "a range with a free port",
           to_string(ports), address.host, why);
    }
    fail(Errc::io, "{} = \"{}\": {}; name an address of this host, and a port that is free or 0",
         field, to_string(address), why);
  }
  const in_port_t port = at.bytes.ss_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6&>(at.bytes).sin6_port
                             : reinterpret_cast<const sockaddr_in&>(at.bytes).sin_port;
  return {.fd = fd, .port = ntohs(port)};
}

TlsSession dial_tls(const TlsAddress& address, const TlsContext& context, std::string_view words,
                    std::chrono::milliseconds timeout) {
  const Dial dial{address, context, words, timeout, Clock::now() + timeout};
  for (int i = 0; i < kDials; ++i) {
    if (auto tls = try_once(dial)) return std::move(*tls);
  }
  fail(Errc::io,
       "the trainer at tls://{} closed the connection without an answer: WEFT_JOB_TOKEN isn't "
       "the token of its job, the trainer has another version of weft, or it doesn't accept "
       "this worker's certificate; the trainer's log shows the reason",
       to_string(address));
}

}  // namespace weft
