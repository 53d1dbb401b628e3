#pragma once
/// LanePort: takes the messages that all peers send to one port of this process.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "transport/lanes/blocks.hpp"
#include "transport/lanes/lane_message.hpp"
#include "transport/lanes/peers.hpp"

namespace weft {

/// Used by one thread at a time, but for wake(). Invariants: lane_node.hpp.
class LanePort {
 public:
  LanePort(Peers& peers, Blocks& blocks, std::uint32_t port);

  /// Takes the next message. Takes from each lane in turn, in the lane's order. Absent if there is
  /// none. Throws corrupt if a sender wrote a message that can't be; the message is then skipped.
  std::optional<InMessage> take();
  /// Whether take() may find a message.
  bool has_news() const noexcept;
  /// Spins, and then sleeps until there is a message, wake() is called, or `at_most` has passed.
  void wait(int spins, std::chrono::nanoseconds at_most);
  /// Ends a wait(). Any thread may call it.
  void wake() noexcept;

  /// The next four are for threads that take turns at the port. Who begins to take calls attend().
  /// Who leaves the port to nobody calls listen(), so that senders ring, and then has_news().
  void attend() noexcept;
  void listen() noexcept;
  /// Counts the rings. Any thread may call it.
  std::uint32_t rings() const noexcept;
  /// Sleeps while rings() is `seen`, for at most `at_most`. May return early. Any thread may call
  /// it.
  void sleep(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept;

  /// Takes the next of the messages that `dead` sent before it died. Absent if none is left.
  std::optional<InMessage> take_from_dead(std::uint32_t dead);
  /// Prepares the lane for the next process with the slot. Call it when take_from_dead() has
  /// returned none.
  void clear(std::uint32_t dead);

 private:
  std::optional<InMessage> take_from(std::uint32_t sender);
  void read(const Entry& entry, InMessage& message);
  void read_long(BlockId block, InMessage& message);
  std::optional<std::uint32_t> next_lane();
  void skip(std::uint32_t sender);
  void give_room(Lane& lane, std::uint64_t taken);

  Peers* peers_;
  Blocks* blocks_;
  std::uint32_t port_;
  PortHead* head_;
  std::array<std::uint64_t, kPeerCountMax> taken_{};
  /// Lanes that may have entries: taken from `news`, but not found empty yet.
  std::array<std::uint64_t, kPeerCountMax / 64> open_{};
  std::uint32_t last_ = kPeerCountMax - 1;  ///< the lane of the last message
  std::atomic<bool> woken_{false};
};

}  // namespace weft
