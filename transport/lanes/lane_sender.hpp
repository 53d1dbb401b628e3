#pragma once
/// LaneSender: sends messages from this process to one port of one peer.

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "transport/lanes/blocks.hpp"
#include "transport/lanes/lane_message.hpp"
#include "transport/lanes/peers.hpp"

namespace weft {

/// Whether a message wakes the thread that takes messages from the port.
enum class Ring : std::uint8_t {
  if_asleep,  ///< only if the thread has said that it sleeps
  always,     ///< also if the port is left to a thread that looks once a second
};

/// Thread-safe. Invariants: lane_node.hpp.
class LaneSender {
 public:
  /// Opens the lane. Throws peer_lost if the peer isn't alive, no_space, or invalid_argument if the
  /// peer has no such port.
  LaneSender(Peers& peers, Blocks& blocks, PeerId to, std::uint32_t port);

  PeerId to() const { return to_; }

  /// Returns false if the lane is full; then nothing has changed. Doesn't wait. Throws
  /// invalid_argument for a body or a list of blocks that is too long, no_space if there is no
  /// memory for a long body.
  bool send(const OutMessage& message, Ring ring_when = Ring::if_asleep);
  /// Spins, and then sleeps until half of a full lane is free or `at_most` has passed. Returns
  /// whether there is room. Several threads may wait.
  bool wait_for_room(int spins, std::chrono::nanoseconds at_most);
  /// Releases the blocks of the messages that were taken since the last call of send() or of this.
  void release_taken();
  /// Releases the blocks of all messages, and returns the headings of those that weren't taken.
  /// Nothing may be sent afterwards. Call it once the peer is dead.
  std::vector<LaneHeading> forget();
  /// Returns the number of messages that were sent but not taken yet.
  std::uint64_t waiting() const;

 private:
  struct Away {
    std::uint64_t number;
    BlockId block;
  };

  std::uint64_t head() const { return lane_->head.load(std::memory_order_acquire); }
  bool has_room() const;
  void release_up_to(std::uint64_t head);
  void write(Entry& entry, const OutMessage& message);
  BlockId put_in_block(const OutMessage& message);
  void ring(Ring when);

  Blocks* blocks_;
  PeerId to_;
  std::uint32_t self_;
  PortHead* port_;
  PortHead* bell_;
  Lane* lane_;
  mutable std::mutex mutex_;
  std::uint64_t sent_ = 0;  // guarded by mutex_
  /// An earlier value of the lane's head, so that most sends don't read the taker's cache line.
  /// Guarded by mutex_.
  std::uint64_t seen_head_ = 0;
  std::deque<Away> away_;  // guarded by mutex_; ascending
};

}  // namespace weft
