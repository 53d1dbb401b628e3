#pragma once
/// WireGreeting: the beginning of a TLS connection between two chips: the handshake, then a
/// preamble in each direction.

#include <cstddef>
#include <functional>
#include <string>

#include "transport/wires/tls_session.hpp"
#include "transport/wires/wire_preamble.hpp"

namespace weft {

/// The side that dialled sends its preamble first. The other side answers when it has checked it.
/// If a side doesn't accept the other's preamble, it closes the connection.
class WireGreeting {
 public:
  enum class Progress : std::uint8_t { waiting, done, failed };
  /// Takes the other side's preamble and returns the answer. Throws if it isn't acceptable. The
  /// result of a side that dialled isn't used.
  using Check = std::function<WirePreamble(const WirePreamble& received)>;

  /// Begins on a connected socket, which the object then owns. `first` is what a side that dialled
  /// sends.
  WireGreeting(const TlsContext& context, int fd, const WirePreamble& first = {});

  /// Continues as far as possible without waiting. When it has failed, why() tells the reason.
  Progress progress(const Check& check);
  const std::string& why() const { return why_; }
  int fd() const { return session_.fd(); }
  short events() const { return events_; }  ///< for poll()
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
  std::size_t moved_ = 0;  ///< bytes of the preamble that this step has moved
  short events_;
  std::string why_{};
};

}  // namespace weft
