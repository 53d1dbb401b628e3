#pragma once
/// Door: accepts connections to a job's control socket, and admits a connection when the process at
/// its other end has proven that it belongs to the job. CAF's protocol, BASP, trusts its peers: a
/// malformed frame ends the process. Therefore BASP reads only from admitted connections.
///
/// A worker writes the preamble directly after connect(), or after the TLS handshake:
///
///   preamble = "weftdoor" version:u32 token:char[32]       44 bytes, native byte order

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/link/tls_bridge.hpp"
#include "actors/process/wake_queue.hpp"

namespace weft {

inline constexpr std::size_t kTokenBytes = 32;
inline constexpr std::size_t kPreambleBytes = 12 + kTokenBytes;
using Preamble = std::array<char, kPreambleBytes>;

/// Makes the preamble with this token. Throws invalid_argument for a token of another length.
Preamble make_preamble(std::string_view token);

/// The reasons for which the door closes a connection.
enum class Refusal : std::uint8_t {
  other_user = 0,
  other_protocol = 1,
  other_version = 2,
  wrong_token = 3,
  closed_early = 4,
  late = 5,     ///< the preamble was incomplete at the deadline
  crowded = 6,  ///< late for patience_when_full, because others wait or no descriptors are free
  no_tls = 7,
  no_certificate = 8,
  foreign_certificate = 9,
  outdated_certificate = 10,
};
inline constexpr std::size_t kRefusalCount = 11;
std::string_view to_string(Refusal refusal) noexcept;

struct DoorLimits {
  /// The maximum number of unproven connections. Further connections wait in the socket's queue. A
  /// door never allows more than a quarter of the process's descriptor limit.
  std::size_t unproven_count_max = 64;
  std::chrono::milliseconds patience{5000};
  /// The limit on the time for a preamble while unproven_count_max connections are open or no
  /// descriptors are free. It is short because a worker writes its preamble at once.
  std::chrono::milliseconds patience_when_full{100};
};

/// Makes a door accept connections over TCP with TLS. For each admitted connection, the bridge
/// provides a Unix socket that carries the decrypted bytes.
struct TlsEntrance {
  int listener;  ///< owned by the door, non-blocking
  TlsContext context;
  std::shared_ptr<TlsBridge> bridge;
};

/// The limits for a door that is open to the network. Even 4096 strangers, who fill the socket's
/// queue, are handled in 4 s, and a nearby worker has enough time for its handshake.
inline constexpr DoorLimits kTlsDoorLimits{.unproven_count_max = 256,
                                           .patience_when_full = std::chrono::milliseconds(250)};

/// Thread-safe. The door's own thread accepts, reads and closes connections. It never blocks on a
/// peer, and no other thread waits for it. The first refusal of each kind is logged at once, and
/// the counts are logged when the door closes.
class Door {
 public:
  /// Listens at `path`, with mode 0600. Throws io; invalid_argument for a path or token of a wrong
  /// length.
  Door(const std::string& path, std::string_view token, const DoorLimits& limits = {});
  /// Throws invalid_argument for a token of a wrong length.
  Door(TlsEntrance entrance, std::string_view token, const DoorLimits& limits = kTlsDoorLimits);
  ~Door() { close(); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// Returns a descriptor that is readable while take() has a connection to return.
  int fd() const { return proven_.fd(); }
  /// Returns an admitted connection, which the caller then owns; -1 if there is none.
  int take();
  /// Must be called when process `pid` has ended. Ends the process's connection over a Unix socket,
  /// even if a child of the process holds it open. Bytes that were already received can still be
  /// read.
  void hang_up(pid_t pid);
  /// Stops listening and closes unproven connections. A second call does nothing.
  void close();

  std::array<std::uint64_t, kRefusalCount> refused() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// An unproven connection, and the part of its preamble received so far.
  struct Peer {
    int fd;
    std::string who;  ///< names the peer in the log
    Clock::time_point since;
    std::optional<TlsSession> tls{};  ///< owns fd if it is present
    bool has_shaken_hands = false;
    short waits_for;  ///< events for poll()
    std::size_t got = 0;
    Preamble bytes{};
  };

  void serve();
  bool full() const { return unproven_.size() >= limits_.unproven_count_max; }
  int milliseconds_left() const;
  void accept_one();
  bool settle(Peer& peer);
  bool settle(Peer& peer, TlsProgress progress);
  void judge(Peer& peer);
  void let_in(Peer& peer);
  void close_ended_links();
  void close_late();
  void refuse(Peer& peer, Refusal refusal);

  const Preamble expected_;
  const DoorLimits limits_;
  int listener_ = -1;
  const std::optional<TlsEntrance> entrance_;  ///< absent: a Unix socket
  std::vector<Peer> unproven_;                 ///< oldest first; only thread_ uses it
  bool starved_ = false;                       ///< no descriptors were free; only thread_ uses it
  bool closing_ = false;                       ///< guarded by mutex_
  mutable std::mutex mutex_;
  std::multimap<pid_t, int> links_;  ///< guarded by mutex_; duplicates of the admitted connections'
                                     ///< sockets
  std::array<std::uint64_t, kRefusalCount> refused_{};  ///< guarded by mutex_
  WakeQueue<int> proven_;
  WakeFd wake_;
  std::jthread thread_;
};

}  // namespace weft
