#include "actors/link/tls_bridge.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"

namespace weft {
namespace {

/// The limit on rounds in which one connection's bytes are moved before the next connection is
/// served.
constexpr int kTurnsAtOnce = 16;

/// A buffer of the bytes that are in transit in one direction.
class Cargo {
 public:
  bool empty() const { return begin_ == end_; }
  bool full() const { return end_ == bytes_.size(); }
  std::span<char> room() { return std::span(bytes_).subspan(end_); }
  std::span<const char> held() const { return std::span(bytes_).subspan(begin_, end_ - begin_); }
  void came(std::size_t count) { end_ += count; }
  void went(std::size_t count) {
    begin_ += count;
    if (empty()) begin_ = end_ = 0;
  }
  void clear() { begin_ = end_ = 0; }

 private:
  std::array<char, kBridgeBytes> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace

/// One connection. A side that has "ended" sends no more bytes. A side that is "gone" doesn't
/// receive any either.
class TlsBridge::Lane {
 public:
  Lane(TlsSession tls, int plain) : tls_(std::move(tls)), plain_(plain) {}
  ~Lane() { ::close(plain_); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  bool busy() const { return busy_; }
  const std::optional<Clock::time_point>& give_up() const { return give_up_; }
  void set_give_up(Clock::time_point when) { give_up_ = give_up_.value_or(when); }

  pollfd plain_wait() const {
    const bool in = !plain_ended_ && !tls_gone_ && !to_tls_.full();
    const int events = (in ? POLLIN : 0) | (to_plain_.empty() ? 0 : POLLOUT);
    // poll() reports a closed socket even if no events are requested, so such a descriptor is left
    // out.
    return {.fd = events == 0 && plain_gone_ ? -1 : plain_,
            .events = static_cast<short>(events),
            .revents = 0};
  }
  pollfd tls_wait() const {
    const bool room = plain_gone_ || !to_plain_.full();
    const bool in =
        !tls_gone_ && (writing_wants_read_ || (!tls_ended_ && !reading_wants_write_ && room));
    const bool out = !tls_gone_ && (writing_wants_write_ || reading_wants_write_);
    const int events = (in ? POLLIN : 0) | (out ? POLLOUT : 0);
    return {.fd = events == 0 ? -1 : tls_.fd(), .events = static_cast<short>(events), .revents = 0};
  }

  /// Handles the events that poll() reported for the plain end.
  void move(int plain_events, Clock::time_point give_up) {
    if ((plain_events & (POLLHUP | POLLERR)) != 0) plain_gone_ = true;
    busy_ = true;
    for (int turn = 0; turn < kTurnsAtOnce && busy_; ++turn) {
      busy_ = read_plain();
      busy_ = write_tls() || busy_;
      busy_ = read_tls() || busy_;
      busy_ = write_plain() || busy_;
    }
    if (plain_ended_ && plain_gone_) set_give_up(give_up);
  }

  bool over(Clock::time_point now) const {
    const bool nothing_for_plain = (tls_ended_ || tls_gone_) && (to_plain_.empty() || plain_gone_);
    return (nothing_for_plain && (said_end_ || tls_gone_)) || (give_up_ && now >= *give_up_);
  }

 private:
  // Each of the following functions returns whether something has changed.

  bool read_plain() {
    if (plain_ended_ || tls_gone_ || to_tls_.full()) return false;
    const auto room = to_tls_.room();
    const ssize_t count = ::recv(plain_, room.data(), room.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (count > 0) {
      to_tls_.came(static_cast<std::size_t>(count));
    } else {
      plain_ended_ = true;
      plain_gone_ = plain_gone_ || count < 0;
    }
    return true;
  }

  bool write_tls() {
    if (tls_gone_ || tls_deaf_) to_tls_.clear();
    if (tls_gone_ || tls_deaf_ || said_end_ || (to_tls_.empty() && !plain_ended_)) return false;
    std::size_t count = 0;
    const bool end = to_tls_.empty();
    const TlsProgress progress = end ? tls_.end_writing() : tls_.write(to_tls_.held(), count);
    to_tls_.went(count);
    writing_wants_read_ = progress == TlsProgress::wants_read;
    writing_wants_write_ = progress == TlsProgress::wants_write;
    said_end_ = end && progress == TlsProgress::done;
    // If the connection is lost, the bytes that have already arrived must still be read.
    tls_deaf_ = progress == TlsProgress::lost && !tls_ended_;
    return tls_deaf_ || settle(progress);
  }

  bool read_tls() {
    if (tls_gone_ || tls_ended_ || (to_plain_.full() && !plain_gone_)) return false;
    if (plain_gone_) to_plain_.clear();  // dropped, but the end must be noticed
    std::size_t count = 0;
    const TlsProgress progress = tls_.read(to_plain_.room(), count);
    to_plain_.came(count);
    reading_wants_write_ = progress == TlsProgress::wants_write;
    return settle(progress);
  }

  bool settle(TlsProgress progress) {
    if (progress == TlsProgress::failed) {
      logger("weft.transport")->warn("a control connection over TLS has failed: {}", tls_.why());
    }
    switch (progress) {
      case TlsProgress::wants_read:
      case TlsProgress::wants_write: return false;
      case TlsProgress::done: return true;
      case TlsProgress::ended:
        tls_ended_ = true;
        tls_gone_ = tls_deaf_;
        return true;
      case TlsProgress::failed:
      case TlsProgress::lost: tls_gone_ = true; return true;
    }
    return false;
  }

  bool write_plain() {
    if (plain_gone_) to_plain_.clear();
    if (to_plain_.empty()) {
      if (!plain_told_ && (tls_ended_ || tls_gone_)) {
        plain_told_ = true;
        ::shutdown(plain_, SHUT_WR);
      }
      return false;
    }
    const auto held = to_plain_.held();
    const ssize_t count = ::send(plain_, held.data(), held.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (count < 0) {
      plain_gone_ = true;
    } else {
      to_plain_.went(static_cast<std::size_t>(count));
    }
    return true;
  }

  TlsSession tls_;
  const int plain_;
  Cargo to_tls_;
  Cargo to_plain_;
  bool plain_ended_ = false;
  bool plain_gone_ = false;
  bool plain_told_ = false;  ///< the plain end was told that the TLS side has ended
  bool tls_ended_ = false;
  bool tls_deaf_ = false;  ///< the TLS side takes no more bytes, but may still send
  bool tls_gone_ = false;
  bool said_end_ = false;  ///< the TLS side was told that the plain end has ended
  bool writing_wants_read_ = false;
  bool writing_wants_write_ = false;
  bool reading_wants_write_ = false;
  bool busy_ = true;  ///< TLS may have read ahead, so there may be bytes to move without an event
  std::optional<Clock::time_point> give_up_;
};

TlsBridge::TlsBridge(std::chrono::milliseconds linger) : linger_(linger) {
  thread_ = start_job_thread("weft.tls", [this] { serve(); });
}

TlsBridge::~TlsBridge() { close(); }

int TlsBridge::add(TlsSession tls) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    fail(Errc::io, "a control connection over TLS: socketpair: {}", std::strerror(errno));
  }
  added_.push(std::make_unique<Lane>(std::move(tls), ends[0]));
  return ends[1];
}

void TlsBridge::close() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  closing_.wake();
  thread_.join();
}

/// Returns the time until the first connection is given up; 0 if a connection may have bytes to
/// move.
int TlsBridge::milliseconds_left() const {
  int least = -1;
  for (const auto& lane : lanes_) {
    if (lane->busy()) return 0;
    if (!lane->give_up()) continue;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*lane->give_up() - Clock::now()).count();
    const int milliseconds = static_cast<int>(std::max<std::int64_t>(left, 0));
    least = least < 0 ? milliseconds : std::min(least, milliseconds);
  }
  return least;
}

void TlsBridge::serve() {
  for (bool closing = false; !closing || !lanes_.empty();) {
    std::vector<pollfd> waits{{.fd = closing ? -1 : closing_.fd(), .events = POLLIN, .revents = 0},
                              {.fd = added_.fd(), .events = POLLIN, .revents = 0}};
    const std::size_t first = waits.size();
    for (const auto& lane : lanes_) {
      waits.push_back(lane->plain_wait());
      waits.push_back(lane->tls_wait());
    }
    if (::poll(waits.data(), waits.size(), milliseconds_left()) < 0 && errno != EINTR) {
      lanes_.clear();
      return logger("weft.transport")
          ->error("control connections over TLS have ended: poll: {}", std::strerror(errno));
    }
    wakes_.fetch_add(1, std::memory_order_relaxed);
    const auto now = Clock::now();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const pollfd& plain = waits[first + 2 * i];
      if (plain.revents == 0 && waits[first + 2 * i + 1].revents == 0 && !lanes_[i]->busy()) {
        continue;
      }
      lanes_[i]->move(plain.revents, now + linger_);
    }
    while (auto lane = added_.pop()) lanes_.push_back(std::move(*lane));
    closing = closing || waits[0].revents != 0;
    if (closing) {
      for (const auto& lane : lanes_) lane->set_give_up(now + linger_);
    }
    std::erase_if(lanes_, [&](const auto& lane) { return lane->over(now); });
  }
}

}  // namespace weft
