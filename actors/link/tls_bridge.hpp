#pragma once
/// TlsBridge: presents TLS connections as Unix sockets, so that their readers and writers need no
/// TLS code.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/process/wake_queue.hpp"
#include "transport/wires/tls_session.hpp"

namespace weft {

inline constexpr std::size_t kBridgeBytes = std::size_t{64} << 10;

/// Thread-safe. One thread copies the bytes of all connections in both directions:
/// 1. The thread sleeps in poll() unless there is a byte to move and room for it.
/// 2. A connection buffers at most kBridgeBytes in each direction. If a buffer is full, only its
///    writer is blocked.
/// 3. Each direction ends separately, after its last byte. If the connection is lost, both
///    directions end after the received bytes are delivered.
class TlsBridge {
 public:
  /// When the plain end of a connection is closed, the bridge waits at most `linger` for the other
  /// side to end.
  explicit TlsBridge(std::chrono::milliseconds linger = std::chrono::seconds(2));
  ~TlsBridge();
  TlsBridge(const TlsBridge&) = delete;
  TlsBridge& operator=(const TlsBridge&) = delete;

  /// Takes over a connection after its handshake and returns the plain end, which the caller owns.
  /// Throws io.
  int add(TlsSession tls);
  /// Ends all connections when the bytes that were written to closed plain ends have been sent, or
  /// after `linger`. A second call does nothing.
  void close();

  /// Returns the number of times that the thread has returned from poll().
  std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  class Lane;

  void serve();
  int milliseconds_left() const;

  const std::chrono::milliseconds linger_;
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< used only by the thread
  bool closed_ = false;                       ///< guarded by mutex_
  std::mutex mutex_;
  WakeQueue<std::unique_ptr<Lane>> added_;
  WakeFd closing_;
  std::atomic<std::uint64_t> wakes_{0};  ///< relaxed: publishes no other data
  std::jthread thread_;
};

}  // namespace weft
