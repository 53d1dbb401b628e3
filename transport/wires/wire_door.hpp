#pragma once
/// WireDoor: accepts the connections of a chip's peers, and closes those of strangers.

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transport/wires/own_network.hpp"
#include "transport/wires/wire_greeting.hpp"

namespace weft {

/// Limits for connections whose greeting hasn't succeeded yet, which may be those of strangers.
struct WireDoorLimits {
  std::size_t unproven_count_max = 128;
  std::chrono::milliseconds patience{5000};
  /// The time for a greeting while unproven_count_max connections are open or no file descriptors
  /// are free. It is enough for a peer, because peers greet at once.
  std::chrono::milliseconds patience_when_full{250};
};

/// Only one thread may use it at a time. It never waits. The first refusal for each reason is
/// logged at once, and the numbers of refusals are logged when the door closes.
class WireDoor {
 public:
  using Log = std::function<void(const std::string& line)>;
  /// Takes a connection whose greeting has succeeded.
  using Admit = std::function<void(const WirePreamble& received, TlsSession session)>;

  /// Listens at the numeric address `host`, at a free port of `ports`. Throws invalid_argument if
  /// `host` isn't an address, and io.
  WireDoor(const std::string& host, const PortRange& ports, TlsContext context, Log log,
           const WireDoorLimits& limits = {});
  /// Accepts the connections of `listener`, a listening, non-blocking socket that the door then
  /// owns.
  WireDoor(int listener, std::string address, TlsContext context, Log log,
           const WireDoorLimits& limits = {});
  ~WireDoor() { close(); }
  WireDoor(const WireDoor&) = delete;
  WireDoor& operator=(const WireDoor&) = delete;

  /// Returns the address and port, such as "10.0.0.1:4711" or "[fd00::1]:4711".
  const std::string& address() const { return address_; }
  bool is_open() const { return listener_ >= 0; }
  /// Accepts connections and continues their greetings, with `check`. Calls `admit` for each
  /// greeting that succeeds. Returns whether anything has happened.
  bool progress(const WireGreeting::Check& check, const Admit& admit);
  /// Adds the events for which progress() waits.
  void add_events(std::vector<pollfd>& events) const;
  /// Stops listening, and closes unproven connections. A second call does nothing.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Unproven {
    WireGreeting greeting;
    std::string who;  ///< the other side, for the log
    Clock::time_point since;
    WirePreamble received{};
  };
  struct Refused {
    std::string reason;
    std::uint64_t count = 0;
  };

  void excuse_pause();
  bool accept_all();
  void close_late();
  void refuse(const std::string& who, const std::string& reason);

  TlsContext context_;
  Log log_;
  WireDoorLimits limits_;
  int listener_ = -1;
  bool starved_ = false;                     ///< no file descriptors were free
  Clock::time_point served_ = Clock::now();  ///< when progress() was called last
  std::string address_;
  std::vector<Unproven> unproven_;  ///< oldest first
  std::vector<Refused> refused_;
};

}  // namespace weft
