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

/// Says whether a message wakes the thread that takes messages from the port.
enum class Ring : std::uint8_t {
  if_asleep,  ///< only if the thread has announced that it sleeps
  always,     ///< even if the port is left to a thread that checks it once a second
};

/// Thread-safe. Invariants: lane_node.hpp.
class LaneSender {
 public:
  /// Opens the lane. Throws peer_lost if the peer isn't alive, no_space, or invalid_argument if the
  /// peer has no such port.
  LaneSender(Peers& peers, Blocks& blocks, PeerId to, std::uint32_t port);

  PeerId to() const { return to_; }

  /// Sends the message without waiting. Returns false, and changes nothing, if the lane is full.
  /// Throws invalid_argument if the body or the list of blocks is too long, no_space if there is no
  /// memory for a long body.
  bool send(const OutMessage& message, Ring ring_when = Ring::if_asleep);
  /// Waits, first by spinning and then asleep, until half of a full lane is free or `at_most` has
  /// passed. Returns whether there is room. Several threads may wait.
  bool wait_for_room(int spins, std::chrono::nanoseconds at_most);
  /// Releases the blocks of messages that the taker has taken since the last send() or
  /// release_taken().
  void release_taken();
  /// Releases the blocks of all messages, and returns the headings of the messages that weren't
  /// taken. Call it once the peer is dead, and send nothing afterwards.
  std::vector<LaneHeading> forget();
  /// Returns how many messages were sent but not taken yet.
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
  /// An earlier value of the lane's head. Most sends need no newer one, so they don't read the
  /// taker's cache line. Guarded by mutex_.
  std::uint64_t seen_head_ = 0;
  std::deque<Away> away_;  // blocks of messages not taken yet, by number; guarded by mutex_
};

}  // namespace weft
