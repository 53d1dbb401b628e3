#pragma once
/// SlotCall: a broadcast of a few bytes. Its root puts them into a slot of its ring and continues.
///
/// The messages of a group are counted from 1, regardless of their roots. Invariants:
///
/// 1. All chips of a group see the same messages in the same order, and know the root of each.
///    Message m is in slot m % kSlotCount of its root's ring, which only the root writes.
/// 2. If a chip's word `messages` is m, the chip has passed all messages before m, and either is
///    the root that has posted m or a reader that waits for m. A reader that finds a message
///    already there updates its word only every kSlotCount / 4 messages. Otherwise a root that
///    waits for room, which reads the word again and again, would take the line from its writer.
///    The words increase, have 64 bits, and are reset only together with the rings, when a
///    generation begins. So a slot is never mistaken for the slot of another message.
/// 3. A root posts message m when the word of every other chip is at least m - kSlotCount + 1, so
///    that all have passed the slot's previous message. It looks at the words only if it doesn't
///    know that yet, and then continues when they are at least m - kSlotCount / 2.
/// 4. The slot's number publishes its mail, its history, and everything that the root has written
///    before. The history covers this call and the calls with all messages before. A reader
///    compares it before it uses the mail. A root learns of a divergence when it next waits: the
///    history is part of a sync's word, and a peer that is ahead of a root considers itself a root.
/// 5. A chip's call stays in its ring until the others have passed the call's message, so that both
///    calls of a divergence can be named.
/// 6. A sleeper reads `slot_woken`, then sets `slot_sleepers`. After a heavy fence it looks a last
///    time, and sleeps while `slot_woken` doesn't change. A chip that posts, or changes its word,
///    issues a light fence and looks at `slot_sleepers`. If that is set, the chip clears it,
///    increments `slot_woken` and wakes all. It clears the flag after a sleeper set it, so
///    `slot_woken` changes after the sleeper read it. Both words are in the line of the group's
///    first chip.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "transport/collectives/call_record.hpp"
#include "transport/collectives/group.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Returns the call that a chip made as its collective of this number, if it is in the chip's ring
/// with a message up to `last`.
std::optional<RecordedCall> read_slot_record(
    const SlotRing& ring, std::uint64_t number,
    std::uint64_t last = std::numeric_limits<std::uint64_t>::max());

/// The call of one chip.
class SlotCall {
 public:
  /// Reserves the rings of the chip and of the root. Throws no_space.
  SlotCall(const CollectiveCall& call, Group& group, JobMemory& memory);

  bool is_root() const { return is_root_; }
  int root() const { return root_; }  ///< index of the root in the group

  /// Begins the chip's next message, and returns its number.
  std::uint64_t begin(std::uint64_t signature) const {
    progress_->history += signature;
    return ++progress_->messages;
  }
  /// Publishes how far the chip is. A reader calls it before it waits.
  void publish() const {
    own_->root.store(root_chip_, std::memory_order_relaxed);
    publish_messages(*progress_, *own_);
  }
  /// For a reader: whether it must publish this message even if the message is already there.
  static bool is_published(std::uint64_t message) { return message % kPublishedEach == 0; }

  /// For a root: whether the other chips have left room for the message.
  bool has_room(std::uint64_t message) const {
    return message <= progress_->room || find_room(message);
  }
  void post(std::uint64_t message, const StartedCall& started) const {
    MessageSlot& to = slot(message);
    copy(to.mail, source_);
    to.history.store(progress_->history, std::memory_order_relaxed);
    SlotRecord& called = ring_->records[message % kSlotCount];
    called.number.store(started.number, std::memory_order_relaxed);
    called.signature.store(started.signature, std::memory_order_relaxed);
    if (progress_->recorded[message % kSlotCount] != started.call->id()) record(message, started);
    to.message.store(message, std::memory_order_release);
    publish();
  }
  /// For a reader: whether the message is there.
  bool has_arrived(std::uint64_t message) const {
    return slot(message).message.load(std::memory_order_acquire) == message;
  }
  bool is_of_same_calls(std::uint64_t message) const {
    return slot(message).history.load(std::memory_order_relaxed) == progress_->history;
  }
  /// A reader copies the message to its destination. The root copies its source to its own
  /// destination.
  void take(std::uint64_t message) const {
    if (!is_root_) {
      copy(destination_, slot(message).mail);
    } else if (source_ != destination_) {
      copy(destination_, source_);
    }
  }

  /// Returns the root's call with a message that has arrived.
  std::optional<RecordedCall> posted_call(std::uint64_t message) const {
    return read_slot_record(*ring_, number(message));
  }
  /// For a root that hasn't posted the message: whether the peer has another root for it.
  bool has_diverged(const Peer& peer, std::uint64_t message) const;
  /// Whether the chip waits for this peer.
  bool is_awaited(const Peer& peer, std::uint64_t message) const;
  /// For a root: the number of the collective with the first message that the peer must still
  /// publish; 0 if this chip wasn't that message's root.
  std::uint64_t number_awaited(const Peer& peer) const;

 private:
  static constexpr std::uint64_t kPublishedEach = kSlotCount / 4;

  MessageSlot& slot(std::uint64_t message) const { return ring_->slots[message % kSlotCount]; }
  std::uint64_t number(std::uint64_t message) const {
    return ring_->records[message % kSlotCount].number.load(std::memory_order_relaxed);
  }
  bool find_room(std::uint64_t message) const;
  void record(std::uint64_t message, const StartedCall& started) const;
  static bool lags(const Peer& peer, std::uint64_t message) {
    return peer.line->messages.load(std::memory_order_acquire) + kSlotCount / 2 < message;
  }
  /// A copy whose size is known to the compiler is one instruction; for another size it is a call.
  void copy(std::byte* to, const std::byte* from) const {
    switch (bytes_) {
      case 4: std::memcpy(to, from, 4); break;
      case 8: std::memcpy(to, from, 8); break;
      case 16: std::memcpy(to, from, 16); break;
      default: std::memcpy(to, from, bytes_);
    }
  }

  Group* group_;
  GroupProgress* progress_;
  GroupLine* own_;
  int root_;
  std::uint32_t root_chip_;
  bool is_root_;
  SlotRing* ring_;  ///< the root's ring
  std::size_t bytes_;
  const std::byte* source_;
  std::byte* destination_;
};

}  // namespace weft
