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

/// One thread at a time may use a port, except for the functions marked below. Invariants:
/// lane_node.hpp.
class LanePort {
 public:
  LanePort(Peers& peers, Blocks& blocks, std::uint32_t port);

  /// Returns the next message: takes from the lanes in turn, and from each lane in its order.
  /// Returns nothing if there is no message. Throws corrupt if a sender wrote an invalid message,
  /// which is then skipped.
  std::optional<InMessage> take();
  /// Returns whether take() may find a message.
  bool has_news() const noexcept;
  /// Spins, and then sleeps until there is a message, wake() is called, or `at_most` has passed.
  void wait(int spins, std::chrono::nanoseconds at_most);
  /// Ends a wait(). Any thread may call it.
  void wake() noexcept;

  /// The next four functions are for threads that take turns at the port. A thread that begins to
  /// take messages calls attend(). A thread that leaves the port unattended calls listen(), so that
  /// senders ring, and then has_news().
  void attend() noexcept;
  void listen() noexcept;
  /// Returns how often the port's bell was rung. Any thread may call it.
  std::uint32_t rings() const noexcept;
  /// Sleeps while rings() equals `seen`, for at most `at_most`. May return early. Any thread may
  /// call it.
  void sleep(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept;

  /// Returns the next of the messages that `dead` sent before it died, or nothing if none is left.
  std::optional<InMessage> take_from_dead(std::uint32_t dead);
  /// Prepares the lane for the next process that gets the slot. Call it when take_from_dead() has
  /// returned nothing.
  void clear(std::uint32_t dead);

 private:
  std::optional<InMessage> take_from(std::uint32_t sender);
  void read(const Entry& entry, InMessage& message);
  void read_long(BlockId block, InMessage& message);
  bool has_entry(std::uint32_t sender) const noexcept;
  bool unwatch(std::uint32_t sender);
  void skip(std::uint32_t sender);
  void give_room(Lane& lane, std::uint64_t taken);

  Peers* peers_;
  Blocks* blocks_;
  std::uint32_t port_;
  PortHead* head_;
  std::array<std::uint64_t, kPeerCountMax> taken_{};
  std::uint32_t last_ = kPeerCountMax - 1;  ///< the lane from which the last message came
  std::atomic<bool> woken_{false};
};

}  // namespace weft
