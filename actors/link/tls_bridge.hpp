#pragma once
/// TlsBridge: TLS connections as Unix sockets, so that whoever reads and writes those needs to know
/// nothing of TLS.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/link/tls_session.hpp"
#include "actors/process/wake_queue.hpp"

namespace weft {

inline constexpr std::size_t kBridgeBytes = std::size_t{64} << 10;

/// Thread-safe. One thread carries the bytes of all connections, both ways:
/// 1. It sleeps in poll() unless there is a byte to move and room for it.
/// 2. A connection holds at most kBridgeBytes in each direction; who writes more waits, others not.
/// 3. Each direction ends for itself, behind its last byte. A connection that is lost ends both,
///    once what has come is delivered.
class TlsBridge {
 public:
  /// `linger`: how long a connection whose plain end is closed waits for the other side's end.
  explicit TlsBridge(std::chrono::milliseconds linger = std::chrono::seconds(2));
  ~TlsBridge();
  TlsBridge(const TlsBridge&) = delete;
  TlsBridge& operator=(const TlsBridge&) = delete;

  /// The plain end, which the caller owns, of a connection that has shaken hands. Throws io.
  int add(TlsSession tls);
  /// Ends the connections, once what was written to plain ends that are closed is with the other
  /// side; but no later than `linger`. The second call does nothing.
  void close();

  /// How often it has come out of poll().
  std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  class Lane;

  void serve();
  int milliseconds_left() const;

  const std::chrono::milliseconds linger_;
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< of the thread
  bool closed_ = false;                       ///< guarded by mutex_
  std::mutex mutex_;
  WakeQueue<std::unique_ptr<Lane>> added_;
  WakeFd closing_;
  std::atomic<std::uint64_t> wakes_{0};  ///< publishes nothing
  std::jthread thread_;
};

}  // namespace weft
