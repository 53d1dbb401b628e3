#pragma once
/// WireGreeting: the beginning of a TLS connection between two chips: first the handshake, then a
/// preamble in each direction.

#include <cstddef>
#include <functional>
#include <string>

#include "transport/wires/tls_session.hpp"
#include "transport/wires/wire_preamble.hpp"

namespace weft {

/// The side that dialled sends its preamble first. The other side checks that preamble and answers
/// with its own. A side that doesn't accept the other's preamble closes the connection.
class WireGreeting {
 public:
  enum class Progress : std::uint8_t { waiting, done, failed };
  /// Checks the other side's preamble, and returns the answer to it, which isn't used on the side
  /// that dialled. Throws if the preamble isn't acceptable.
  using Check = std::function<WirePreamble(const WirePreamble& received)>;

  /// Begins a greeting on a connected socket, which the object then owns. The side that dialled
  /// sends `first`.
  WireGreeting(const TlsContext& context, int fd, const WirePreamble& first = {});

  /// Continues as far as possible without waiting. After a failure, why() returns the reason.
  Progress progress(const Check& check);
  const std::string& why() const { return why_; }
  int fd() const { return session_.fd(); }
  short events() const { return events_; }  ///< events for poll()
  /// Returns the connection, once progress() has returned `done`.
  TlsSession take() { return std::move(session_); }

 private:
  enum class Step : std::uint8_t { handshake, writing, reading, done };

  Progress settle(TlsProgress progress);
  Step next() const;
  bool check_received(const Check& check);

  bool dialled_;
  TlsSession session_;
  Step step_ = Step::handshake;
  WirePreambleBytes sent_{};
  WirePreambleBytes received_{};
  std::size_t moved_ = 0;  ///< preamble bytes that this step has moved
  short events_;
  std::string why_{};
};

}  // namespace weft
