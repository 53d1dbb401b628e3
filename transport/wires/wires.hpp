#pragma once
/// Wires: the connections of one chip to chips of other hosts. A wire carries bytes in order and
/// without loss, straight from and into the caller's memory.
///
/// A chip makes its Wires, tells its address() to its peers, passes the peers' addresses to
/// connect(), and calls progress() until the wires are up. A wire may also connect later, when both
/// ends have posted to it. The i-th send() at one end of a wire fills the i-th receive() at the
/// other end, and both must have the same size. A wire that breaks stays lost until the end of the
/// generation, but doesn't show which end is at fault.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/wires/own_network.hpp"

namespace weft {

/// The chip at one end of a wire. When a wire connects, each end checks these values of the other
/// end.
struct WireEnd {
  std::uint32_t host = 0;    ///< number of the chip's host
  std::uint32_t worker = 0;  ///< number of the chip's worker
  std::uint32_t chip = 0;    ///< device id
  friend bool operator==(const WireEnd&, const WireEnd&) = default;
};
/// Returns a text such as "chip 5 of worker 2 on host 1".
std::string to_string(const WireEnd& end);

/// The longest job id, in bytes.
inline constexpr std::size_t kWireJobBytes = 64;
/// The shortest secret, in bytes.
inline constexpr std::size_t kWireSecretBytes = 16;

struct WireConfig {
  std::string job;               ///< id of the job, at most kWireJobBytes
  std::uint64_t generation = 0;  ///< wires of different generations don't connect
  std::uint32_t channel = 0;     ///< 0: collectives; wires of different channels don't connect
  WireEnd self{};
  /// The numeric address of this host at which its peers reach it, without a port.
  std::string host = "127.0.0.1";
  PortRange ports{};  ///< ports at which TLS may listen
  /// The secret of the job, of at least kWireSecretBytes. Only TLS uses it.
  std::string secret{};
  /// Called with a line of text about refused connections. May be empty.
  std::function<void(const std::string& line)> log{};
};

struct WirePeer {
  WireEnd end;
  std::string address;          ///< the peer's Wires::address(), any bytes
  bool connects_later = false;  ///< connects at the first post of this end, not at once
};

/// If a wire connects later, it is idle before the first post of this end.
enum class WireState : std::uint8_t { idle, connecting, up, lost };

struct WireStatus {
  WireState state = WireState::connecting;
  std::string why{};         ///< why it is lost or not up yet; may be empty
  std::size_t sends = 0;     ///< posts of send() whose memory is still needed
  std::size_t receives = 0;  ///< posts of receive() that aren't filled yet
};

/// Only one thread may use it at a time. The number of a wire is the index of its peer in the list
/// of peers. The destructor delivers what was sent, unless the peer takes no more bytes.
class Wires {
 public:
  virtual ~Wires() = default;

  /// Returns the bytes by which a peer finds this chip.
  virtual const std::string& address() const = 0;
  /// Begins to connect to the peers. May be called once. Throws invalid_argument, naming the peer,
  /// if a peer's address is invalid.
  virtual void connect(std::vector<WirePeer> peers) = 0;
  virtual std::span<const WirePeer> peers() const = 0;
  virtual const WireStatus& status(int wire) const = 0;

  /// Posts memory whose bytes are sent, or which is filled with received bytes. The memory must
  /// live, and bytes to send must not change, until status() no longer counts the post or this
  /// object is destroyed. A lost wire never completes its posts.
  virtual void send(int wire, std::span<const std::byte> bytes) = 0;
  virtual void receive(int wire, std::span<std::byte> into) = 0;

  /// Moves bytes and continues to connect, without waiting. Returns whether anything has happened.
  virtual bool progress() = 0;
  /// Sleeps until progress() can do something, at most for `longest`. May return early.
  virtual void wait(std::chrono::milliseconds longest) = 0;
  /// Ends all wires at once: they are lost then, and the memory of posts isn't touched any more.
  virtual void close() = 0;
};

/// Waits until all wires are up, except those that connect later. Calls `check` repeatedly, which
/// can end the wait by an exception. Throws timeout, naming the missing peers and the reasons.
void await_wires(Wires& wires, std::chrono::milliseconds timeout,
                 const std::function<void()>& check = {});

/// Makes wires over TCP with TLS 1.3. Both ends prove that they know the secret. Throws
/// invalid_argument, naming the field, and io if listening at the host's address fails.
std::unique_ptr<Wires> make_tls_wires(const WireConfig& config);

/// Makes wires over UCX, without encryption: anyone who reaches UCX's ports can write to the
/// process's memory. The process must have been started with the variables of ucx_variables().
/// Throws invalid_argument, naming the field, and unavailable, with the reason, if this build, this
/// machine or this process can't use UCX.
std::unique_ptr<Wires> make_ucx_wires(const WireConfig& config);
/// Returns variables ("NAME=value") that keep UCX from catching the process's signals, hooking its
/// memory functions, starting threads and printing.
std::vector<std::string> ucx_variables();

}  // namespace weft
