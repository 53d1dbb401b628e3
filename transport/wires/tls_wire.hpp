#pragma once
/// TlsWire: moves the bytes of one wire over a TLS session whose greeting has succeeded.

#include <poll.h>

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "transport/wires/tls_session.hpp"
#include "transport/wires/wires.hpp"

namespace weft {

/// The largest number of bytes in a TLS record.
inline constexpr std::size_t kTlsRecordBytes = std::size_t{16} << 10;

class TlsWire {
 public:
  /// The caller may change `state` and `why` until the wire is up.
  WireStatus status{};

  /// Makes the wire use the session for all of its posts, including earlier ones.
  void begin(TlsSession session);
  void send(std::span<const std::byte> bytes);
  void receive(std::span<std::byte> into);

  /// Moves bytes without waiting, up to a limit. Returns whether any were moved. If the connection
  /// is broken, the wire becomes lost.
  bool progress();
  /// Does the sending half of progress().
  bool progress_sends();
  /// Tells the other end that this end sends no more, and drops all posts. The wire is then lost.
  void end();
  /// Drops what the other end still sends. Returns whether the other end has ended too. If the
  /// socket is closed earlier, the kernel may drop sent bytes that the other end hasn't read yet.
  bool drain();
  /// Adds the events for which progress() waits.
  void add_events(std::vector<pollfd>& events) const;

 private:
  bool write_some();
  bool read_some();
  std::span<const char> next_record();
  void pass_sent(std::size_t count);
  bool has_stopped(TlsProgress progress, short& events);

  std::optional<TlsSession> session_;
  std::deque<std::span<const std::byte>> sends_;  ///< the unsent parts of posts
  std::deque<std::span<std::byte>> receives_;     ///< the unfilled parts of posts
  /// A copy of the next bytes of several posts, if the first post doesn't fill a record.
  std::array<char, kTlsRecordBytes> record_;
  short write_events_ = 0;  ///< the event for which the next write waits; 0: none
  short read_events_ = 0;
  bool has_ended_ = false;  ///< end() was called
};

}  // namespace weft
