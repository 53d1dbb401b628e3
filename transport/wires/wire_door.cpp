#include "transport/wires/wire_door.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/wires/wire_address.hpp"

namespace weft {
namespace {

/// The number of refusal reasons that are counted separately. It is limited because a stranger may
/// cause any number of reasons.
constexpr std::size_t kReasonsMax = 16;
/// The most connections that one progress() accepts, so that it ends soon.
constexpr int kAcceptsMax = 64;
/// If progress() wasn't called for this time, the chip did something else: a chip that waits for a
/// wire calls it more often, also on a busy machine.
constexpr std::chrono::seconds kPauseMin{1};

}  // namespace

WireDoor::WireDoor(const std::string& host, const PortRange& ports, TlsContext context, Log log,
                   const WireDoorLimits& limits)
    : context_(std::move(context)), log_(std::move(log)), limits_(limits) {
  WireAddress at = parse_wire_host(host, "wire host");
  listener_ = listen_at(at, ports);
  if (listener_ < 0) {
    const std::string why = std::strerror(errno);
    if (!ports.is_any()) {
      fail(
          Errc::io,
          "backend.ports = \"{}\": a chip can't listen at a port of {}: {}; give a range with more "
          "ports than all jobs of this machine have chips",
          to_string(ports), host, why);
    }
    fail(Errc::io, "wire host = \"{}\": {}; name an address of this host", host, why);
  }
  address_ = to_string(at);
}

WireDoor::WireDoor(int listener, std::string address, TlsContext context, Log log,
                   const WireDoorLimits& limits)
    : context_(std::move(context)),
      log_(std::move(log)),
      limits_(limits),
      listener_(listener),
      address_(std::move(address)) {}

bool WireDoor::accept_all() {
  starved_ = false;
  for (int i = 0; i < kAcceptsMax; ++i) {
    if (unproven_.size() >= limits_.unproven_count_max) return i > 0;
    WireAddress from;
    from.size = sizeof from.bytes;
    const int fd = ::accept4(listener_, from.get(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      starved_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return i > 0;
    }
    unproven_.push_back({WireGreeting(context_, fd), to_string(from), Clock::now()});
  }
  return true;
}

void WireDoor::close_late() {
  const bool full = starved_ || unproven_.size() >= limits_.unproven_count_max;
  const Clock::time_point since =
      Clock::now() - (full ? limits_.patience_when_full : limits_.patience);
  std::erase_if(unproven_, [&](const Unproven& peer) {
    if (peer.since > since) return false;
    refuse(peer.who,
           full ? "it didn't greet in time while many others waited" : "it didn't greet in time");
    return true;
  });
}

/// Extends the time limits of greetings by the time in which the chip did something else, because
/// nobody could be greeted then.
void WireDoor::excuse_pause() {
  const Clock::time_point now = Clock::now();
  const Clock::duration pause = now - std::exchange(served_, now);
  if (pause < kPauseMin) return;
  for (Unproven& peer : unproven_) peer.since += pause;
}

bool WireDoor::progress(const WireGreeting::Check& check, const Admit& admit) {
  if (!is_open()) return false;
  excuse_pause();
  bool has_moved = accept_all();
  for (std::size_t i = 0; i < unproven_.size();) {
    Unproven& peer = unproven_[i];
    const auto progress = peer.greeting.progress([&](const WirePreamble& received) {
      peer.received = received;
      return check(received);
    });
    if (progress == WireGreeting::Progress::waiting) {
      ++i;
      continue;
    }
    has_moved = true;
    if (progress == WireGreeting::Progress::failed) {
      refuse(peer.who, peer.greeting.why());
    } else {
      admit(peer.received, peer.greeting.take());
    }
    unproven_.erase(unproven_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  close_late();
  return has_moved;
}

void WireDoor::add_events(std::vector<pollfd>& events) const {
  if (!is_open()) return;
  if (!starved_ && unproven_.size() < limits_.unproven_count_max) {
    events.push_back({listener_, POLLIN, 0});
  }
  for (const Unproven& peer : unproven_) {
    events.push_back({peer.greeting.fd(), peer.greeting.events(), 0});
  }
}

void WireDoor::refuse(const std::string& who, const std::string& reason) {
  auto found = std::ranges::find(refused_, reason, &Refused::reason);
  if (found == refused_.end()) {
    if (refused_.size() == kReasonsMax) {
      found = refused_.end() - 1;
    } else {
      refused_.push_back({reason});
      found = refused_.end() - 1;
      if (log_) {
        log_(fmt::format("the wire door at {} closed a connection from {}: {}", address_, who,
                         reason));
      }
    }
  }
  ++found->count;
}

void WireDoor::close() {
  if (listener_ < 0) return;
  ::close(std::exchange(listener_, -1));
  unproven_.clear();
  for (const Refused& refused : refused_) {
    if (refused.count > 1 && log_) {
      log_(fmt::format("the wire door at {} closed {} connections: {}", address_, refused.count,
                       refused.reason));
    }
  }
}

}  // namespace weft
