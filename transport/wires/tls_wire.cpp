#include "transport/wires/tls_wire.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weft {
namespace {

/// The number of bytes that one direction moves before it is the other direction's turn.
constexpr std::size_t kTurnBytes = std::size_t{256} << 10;

}  // namespace

void TlsWire::begin(TlsSession session) {
  session_ = std::move(session);
  status.state = WireState::up;
  status.why.clear();
}

void TlsWire::send(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  sends_.push_back(bytes);
  status.sends = sends_.size();
}

void TlsWire::receive(std::span<std::byte> into) {
  if (into.empty()) return;
  receives_.push_back(into);
  status.receives = receives_.size();
}

bool TlsWire::progress() {
  if (status.state != WireState::up) return false;
  const bool has_written = write_some();
  const bool has_read = status.state == WireState::up && read_some();
  return has_written || has_read;
}

bool TlsWire::progress_sends() { return status.state == WireState::up && write_some(); }

/// Returns the bytes to write next: the rest of the first post, or if that is short, the bytes of
/// several posts in one record. If a write must be repeated, the result begins with the bytes of
/// that write.
std::span<const char> TlsWire::next_record() {
  const std::span<const std::byte> first = sends_.front();
  if (first.size() >= kTlsRecordBytes || sends_.size() == 1) {
    return {reinterpret_cast<const char*>(first.data()), first.size()};
  }
  std::size_t size = 0;
  for (auto post = sends_.begin(); post != sends_.end() && size < record_.size(); ++post) {
    const std::size_t count = std::min(post->size(), record_.size() - size);
    std::memcpy(record_.data() + size, post->data(), count);
    size += count;
  }
  return std::span(record_).first(size);
}

void TlsWire::pass_sent(std::size_t count) {
  while (count > 0) {
    std::span<const std::byte>& first = sends_.front();
    const std::size_t passed = std::min(count, first.size());
    first = first.subspan(passed);
    count -= passed;
    if (first.empty()) sends_.pop_front();
  }
  status.sends = sends_.size();
}

bool TlsWire::write_some() {
  std::size_t total = 0;
  while (!sends_.empty() && total < kTurnBytes) {
    std::size_t count = 0;
    const TlsProgress progress = session_->write(next_record(), count);
    if (has_stopped(progress, write_events_)) break;
    pass_sent(count);
    total += count;
  }
  return total > 0;
}

bool TlsWire::read_some() {
  std::size_t total = 0;
  while (!receives_.empty() && total < kTurnBytes) {
    std::span<std::byte>& first = receives_.front();
    std::size_t count = 0;
    const TlsProgress progress =
        session_->read({reinterpret_cast<char*>(first.data()), first.size()}, count);
    if (has_stopped(progress, read_events_)) break;
    first = first.subspan(count);
    total += count;
    if (first.empty()) receives_.pop_front();
  }
  status.receives = receives_.size();
  return total > 0;
}

/// Returns whether the session can't continue now. If it has ended, marks the wire as lost.
bool TlsWire::has_stopped(TlsProgress progress, short& events) {
  switch (progress) {
    case TlsProgress::done: events = 0; return false;
    case TlsProgress::wants_read: events = POLLIN; return true;
    case TlsProgress::wants_write: events = POLLOUT; return true;
    case TlsProgress::ended: status.why = "the other end has closed the wire"; break;
    case TlsProgress::lost: status.why = "the connection broke"; break;
    case TlsProgress::failed: status.why = "TLS failed: " + session_->why(); break;
  }
  status.state = WireState::lost;
  session_.reset();
  return true;
}

void TlsWire::end() {
  if (session_ && !has_ended_) {
    session_->end_writing();
    ::shutdown(session_->fd(), SHUT_WR);
  }
  has_ended_ = true;
  sends_.clear();
  receives_.clear();
  if (status.state == WireState::lost) return;
  status.state = WireState::lost;
  status.why = "this end has closed the wire";
}

bool TlsWire::drain() {
  if (!session_) return true;
  std::array<char, 4096> dropped;
  for (;;) {
    const ssize_t count = ::recv(session_->fd(), dropped.data(), dropped.size(), MSG_DONTWAIT);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    session_.reset();
    return true;
  }
}

void TlsWire::add_events(std::vector<pollfd>& events) const {
  if (has_ended_ && session_) events.push_back({session_->fd(), POLLIN, 0});
  if (status.state != WireState::up) return;
  short waits_for = 0;
  if (!sends_.empty()) waits_for |= write_events_ != 0 ? write_events_ : POLLOUT;
  if (!receives_.empty()) waits_for |= read_events_ != 0 ? read_events_ : POLLIN;
  if (waits_for != 0) events.push_back({session_->fd(), waits_for, 0});
}

}  // namespace weft
