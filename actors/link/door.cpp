#include "actors/link/door.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/link/tls_sockets.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/protocol/abi.hpp"
#include "spmd/base/same_secret.hpp"

namespace weft {
namespace {

constexpr std::string_view kMagic = "weftdoor";
constexpr std::size_t kTokenOffset = kPreambleBytes - kTokenBytes;

/// Limits the unproven connections to a quarter of the process's descriptors, because the job needs
/// descriptors too, for example to restart a lost worker.
DoorLimits leave_descriptors(DoorLimits limits) {
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  const auto quarter = std::max<std::size_t>(most.rlim_cur / 4, 1);
  limits.unproven_count_max = std::min(limits.unproven_count_max, quarter);
  return limits;
}

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    fail(Errc::invalid_argument, "control socket {}: expected a path of at most {} bytes, not {}",
         path, sizeof address.sun_path - 1, path.size());
  }
  path.copy(address.sun_path, path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd, SOMAXCONN) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) ::close(fd);
    fail(Errc::io, "control socket {}: {}", path, why);
  }
  return fd;
}

/// Returns whether all processes have closed the other end.
bool is_closed(int fd) {
  pollfd state{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0;
}

std::string_view text(const Preamble& preamble) { return {preamble.data(), preamble.size()}; }

/// Receives the bytes that are available, at most as many as fit into `into`.
TlsProgress receive(int fd, std::span<char> into, std::size_t& count) {
  const ssize_t got = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
  const bool none = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (none) return TlsProgress::wants_read;
  count = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  return got > 0 ? TlsProgress::done : TlsProgress::lost;
}

/// Returns a text such as "address 10.0.0.7:4711" or "address [fd00::7]:4711".
std::string name_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  const bool ipv6 = address.ss_family == AF_INET6;
  return fmt::format("address {}{}{}:{}", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

Refusal refusal_of(TlsFault fault) {
  switch (fault) {
    case TlsFault::no_certificate: return Refusal::no_certificate;
    case TlsFault::foreign_certificate: return Refusal::foreign_certificate;
    case TlsFault::outdated_certificate: return Refusal::outdated_certificate;
    default: return Refusal::no_tls;
  }
}

}  // namespace

Preamble make_preamble(std::string_view token) {
  if (token.size() != kTokenBytes) {
    fail(Errc::invalid_argument,
         "the job's token (WEFT_JOB_TOKEN) has {} characters, expected {}: start workers with the "
         "variables that the trainer gives them",
         token.size(), kTokenBytes);
  }
  Preamble preamble{};
  kMagic.copy(preamble.data(), kMagic.size());
  std::memcpy(preamble.data() + kMagic.size(), &kAbi, sizeof kAbi);
  token.copy(preamble.data() + kTokenOffset, kTokenBytes);
  return preamble;
}

std::string_view to_string(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::other_user: return "another user";
    case Refusal::other_protocol: return "no preamble of weft";
    case Refusal::other_version: return "another version of weft";
    case Refusal::wrong_token: return "a wrong token";
    case Refusal::closed_early: return "closed before its preamble was complete";
    case Refusal::late: return "no complete preamble in time";
    case Refusal::crowded: return "no complete preamble at once, while others waited";
    case Refusal::no_tls: return "no TLS 1.3, or an aborted TLS handshake";
    case Refusal::no_certificate: return "no certificate";
    case Refusal::foreign_certificate: return "a certificate of another CA or purpose";
    case Refusal::outdated_certificate: return "a certificate that isn't valid today";
  }
  return "?";
}

Door::Door(const std::string& path, std::string_view token, const DoorLimits& limits)
    : expected_(make_preamble(token)),
      limits_(leave_descriptors(limits)),
      listener_(listen_at(path)) {
  thread_ = start_job_thread("weft.door", [this] { serve(); });
}

Door::Door(TlsEntrance entrance, std::string_view token, const DoorLimits& limits) try
    : expected_(make_preamble(token)),
      limits_(leave_descriptors(limits)),
      listener_(entrance.listener),
      entrance_(std::move(entrance)) {
  thread_ = start_job_thread("weft.door", [this] { serve(); });
} catch (...) {
  ::close(entrance.listener);
}

int Door::take() { return proven_.pop().value_or(-1); }

void Door::hang_up(pid_t pid) {
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = links_.equal_range(pid);
  for (auto link = begin; link != end; ++link) {
    ::shutdown(link->second, SHUT_RD);
    ::close(link->second);
  }
  links_.erase(begin, end);
}

void Door::close() {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
  }
  wake_.wake();
  thread_.join();
  ::close(listener_);
  for (const Peer& peer : unproven_) {
    if (!peer.tls) ::close(peer.fd);
  }
  unproven_.clear();
  for (const auto& [pid, link] : links_) ::close(link);
  links_.clear();
  for (int fd = take(); fd >= 0; fd = take()) ::close(fd);
  std::vector<std::string> counts;
  for (std::size_t i = 0; i < kRefusalCount; ++i) {
    if (refused_[i] == 0) continue;
    counts.push_back(fmt::format("{} ({})", refused_[i], to_string(static_cast<Refusal>(i))));
  }
  if (counts.empty()) return;
  logger("weft.trainer")->warn("total of refused connections: {}", fmt::join(counts, ", "));
}

std::array<std::uint64_t, kRefusalCount> Door::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void Door::serve() {
  for (;;) {
    std::vector<pollfd> waits{
        {.fd = wake_.fd(), .events = POLLIN, .revents = 0},
        {.fd = full() || starved_ ? -1 : listener_, .events = POLLIN, .revents = 0}};
    const std::size_t first = waits.size();
    for (const Peer& peer : unproven_) {
      waits.push_back({.fd = peer.fd, .events = peer.waits_for, .revents = 0});
    }
    if (::poll(waits.data(), waits.size(), milliseconds_left()) < 0 && errno != EINTR) {
      return logger("weft.trainer")
          ->error("the control socket accepts no more workers: poll: {}", std::strerror(errno));
    }
    if (waits[0].revents != 0) return;
    std::vector<Peer> waiting;
    for (std::size_t i = 0; i < unproven_.size(); ++i) {
      if (waits[first + i].revents == 0 || !settle(unproven_[i])) {
        waiting.push_back(std::move(unproven_[i]));
      }
    }
    unproven_ = std::move(waiting);
    close_late();
    starved_ = false;
    if (waits[1].revents != 0) accept_one();
  }
}

/// Returns the time until the deadline of the oldest connection; -1 if there is none.
int Door::milliseconds_left() const {
  const bool hurry = full() || starved_;
  const auto patience = hurry ? limits_.patience_when_full : limits_.patience;
  if (unproven_.empty()) return starved_ ? static_cast<int>(patience.count()) : -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(unproven_.front().since +
                                                                 patience - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

/// Accepts only one connection per call, so that others are served in between.
void Door::accept_one() {
  sockaddr_storage address{};
  socklen_t address_size = sizeof address;
  const int fd = ::accept4(listener_, reinterpret_cast<sockaddr*>(&address), &address_size,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    starved_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return;
  }
  Peer peer{.fd = fd, .who = {}, .since = Clock::now(), .waits_for = POLLIN};
  if (entrance_) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    notice_dead_host(fd);
    peer.who = name_of(address, address_size);
    peer.tls.emplace(entrance_->context, fd);
  } else {
    ucred credentials{.pid = 0, .uid = ~0U, .gid = ~0U};
    socklen_t size = sizeof credentials;
    const int known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
    peer.who = fmt::format("uid {}, pid {}", credentials.uid, credentials.pid);
    if (known != 0 || credentials.uid != ::geteuid()) return refuse(peer, Refusal::other_user);
  }
  if (!settle(peer)) unproven_.push_back(std::move(peer));
}

/// Reads the bytes that are available, up to the end of the preamble. Returns true if the
/// connection was admitted or refused.
bool Door::settle(Peer& peer) {
  if (peer.tls && !peer.has_shaken_hands) {
    const TlsProgress progress = peer.tls->handshake();
    if (progress != TlsProgress::done) return settle(peer, progress);
    peer.has_shaken_hands = true;
  }
  while (peer.got < kPreambleBytes) {
    const std::span<char> rest = std::span(peer.bytes).subspan(peer.got);
    std::size_t count = 0;
    const TlsProgress progress =
        peer.tls ? peer.tls->read(rest, count) : receive(peer.fd, rest, count);
    if (progress != TlsProgress::done) return settle(peer, progress);
    peer.got += count;
  }
  judge(peer);
  return true;
}

/// Handles a read that returned no bytes, only `progress`. Returns true if the connection was
/// refused.
bool Door::settle(Peer& peer, TlsProgress progress) {
  peer.waits_for = progress == TlsProgress::wants_write ? POLLOUT : POLLIN;
  if (progress == TlsProgress::wants_read || progress == TlsProgress::wants_write) return false;
  refuse(peer,
         progress == TlsProgress::failed ? refusal_of(peer.tls->fault()) : Refusal::closed_early);
  return true;
}

void Door::judge(Peer& peer) {
  const std::string_view given = text(peer.bytes);
  const std::string_view expected = text(expected_);
  if (!given.starts_with(kMagic)) {
    refuse(peer, Refusal::other_protocol);
  } else if (given.substr(0, kTokenOffset) != expected.substr(0, kTokenOffset)) {
    refuse(peer, Refusal::other_version);
  } else if (!same_secret(given.substr(kTokenOffset), expected.substr(kTokenOffset))) {
    refuse(peer, Refusal::wrong_token);
  } else {
    let_in(peer);
  }
}

void Door::let_in(Peer& peer) {
  if (!peer.tls) {
    ucred from{};
    socklen_t size = sizeof from;
    const int copy = ::fcntl(peer.fd, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0 && ::getsockopt(peer.fd, SOL_SOCKET, SO_PEERCRED, &from, &size) == 0) {
      const std::lock_guard lock(mutex_);
      close_ended_links();
      links_.emplace(from.pid, copy);
    } else if (copy >= 0) {
      ::close(copy);
    }
    return proven_.push(peer.fd);
  }
  try {
    proven_.push(entrance_->bridge->add(std::move(*peer.tls)));
  } catch (const Error&) {
    refuse(peer, Refusal::crowded);  // all descriptors are in use
  }
}

/// Closes the links of processes that have ended without joining, because hang_up() isn't called
/// for them.
void Door::close_ended_links() {
  std::erase_if(links_, [](const auto& link) {
    const bool ended = is_closed(link.second);
    if (ended) ::close(link.second);
    return ended;
  });
}

void Door::close_late() {
  const bool hurry = full() || starved_;
  const auto patience = hurry ? limits_.patience_when_full : limits_.patience;
  const auto now = Clock::now();
  const auto in_time = std::ranges::find_if(
      unproven_, [&](const Peer& peer) { return now - peer.since < patience; });
  for (auto peer = unproven_.begin(); peer != in_time; ++peer) {
    refuse(*peer, now - peer->since < limits_.patience ? Refusal::crowded : Refusal::late);
  }
  unproven_.erase(unproven_.begin(), in_time);
}

void Door::refuse(Peer& peer, Refusal refusal) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = refused_[static_cast<std::size_t>(refusal)]++ == 0;
  }
  if (peer.tls) {
    peer.tls.reset();
  } else {
    ::close(peer.fd);
  }
  if (!first) return;
  logger("weft.trainer")
      ->warn(
          "refused a connection ({}) from {}; until the job ends, further refusals of this "
          "kind are only counted",
          to_string(refusal), peer.who);
}

}  // namespace weft
