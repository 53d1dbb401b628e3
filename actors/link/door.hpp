#pragma once
/// Door: a job's control socket up to the point where a process has proven that it is of the job.
/// BASP trusts its peers wholly, and one malformed frame ends it; it reads from no other.
///
/// What a worker writes straight after connect(), or after the handshake of TLS, and the door waits
/// for:
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

/// Throws invalid_argument for a token of another length.
Preamble make_preamble(std::string_view token);

/// Takes as long for every wrong secret as for the right one.
bool same_secret(std::string_view given, std::string_view expected) noexcept;

/// Why a connection was closed at the door.
enum class Refusal : std::uint8_t {
  other_user = 0,
  other_protocol = 1,
  other_version = 2,
  wrong_token = 3,
  closed_early = 4,
  late = 5,     ///< it hadn't said enough when its time was over
  crowded = 6,  ///< the same, in less time: others wait, or descriptors have run out
  no_tls = 7,
  no_certificate = 8,
  foreign_certificate = 9,
  outdated_certificate = 10,
};
inline constexpr std::size_t kRefusalCount = 11;
std::string_view to_string(Refusal refusal) noexcept;

struct DoorLimits {
  /// Connections that haven't proven anything; more wait in the socket's queue. Never more than a
  /// quarter of the descriptors that the process may have.
  std::size_t unproven_count_max = 64;
  std::chrono::milliseconds patience{5000};
  /// Where as many are there as may be: a worker writes its preamble at once.
  std::chrono::milliseconds patience_when_full{100};
};

/// Where connections come over TCP and have to speak TLS: the bridge gives the plain end of those
/// that have proven themselves.
struct TlsEntrance {
  int listener;  ///< the door's from now on, non-blocking
  TlsContext context;
  std::shared_ptr<TlsBridge> bridge;
};

/// For a door that anybody on the network may come to: a crowd that fills the socket's queue (4096)
/// has passed in 4 s, and a worker that is near has its time.
inline constexpr DoorLimits kTlsDoorLimits{.unproven_count_max = 256,
                                           .patience_when_full = std::chrono::milliseconds(250)};

/// Thread-safe. A thread of its own accepts, reads and closes; it never waits for a peer, and no
/// one waits for it. The first refusal of each kind goes to the log, and the counts when it closes.
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

  /// Readable where take() has something.
  int fd() const { return proven_.fd(); }
  /// A connection that has proven itself, which the caller owns; -1 where there is none.
  int take();
  /// That process has ended: what it has sent can still be read, then its connection over a Unix
  /// socket ends, though a child of it may hold it open too.
  void hang_up(pid_t pid);
  /// Ends the listening and whatever waits; the second call does nothing.
  void close();

  std::array<std::uint64_t, kRefusalCount> refused() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// A connection, and what has come of its preamble.
  struct Peer {
    int fd;
    std::string who;  ///< for the log
    Clock::time_point since;
    std::optional<TlsSession> tls{};  ///< it owns fd then
    bool has_shaken_hands = false;
    short waits_for;  ///< of poll()
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
  const std::optional<TlsEntrance> entrance_;  ///< none: a Unix socket
  std::vector<Peer> unproven_;                 ///< by age; of the thread
  bool starved_ = false;                       ///< no descriptors were left; of the thread
  bool closing_ = false;                       ///< guarded by mutex_
  mutable std::mutex mutex_;
  std::multimap<pid_t, int> links_;  ///< guarded by mutex_; duplicates of those let in, to hang up
  std::array<std::uint64_t, kRefusalCount> refused_{};  ///< guarded by mutex_
  WakeQueue<int> proven_;
  WakeFd wake_;
  std::jthread thread_;
};

}  // namespace weft
