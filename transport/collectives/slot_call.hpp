#pragma once
/// SlotCall: broadcasts a few bytes. The root puts them into a slot of its ring and continues.
///
/// The messages of a group are counted from 1, regardless of their roots. Invariants:
///
/// 1. All chips of a group see the same messages in the same order, and know the root of each.
///    Message m is in slot m % kSlotCount of its root's ring, which only the root writes.
/// 2. If a chip's word `messages` is m, the chip has passed all messages before m. It is either the
///    root, which has posted m, or a reader that waits for m. A reader that finds messages already
///    there updates its word only every kSlotCount / 4 messages: a root that waits for room reads
///    the word again and again, and so takes the line from its writer each time. The words
///    only increase, have 64 bits, and are reset only with the rings, when a generation begins.
///    So a slot's message is never mistaken for another message.
/// 3. A root posts message m when the word of every other chip is at least m - kSlotCount + 1, so
///    that all have passed the slot's previous message. It reads the words only if it doesn't know
///    this yet, and then waits until they are at least m - kSlotCount / 2.
/// 4. Storing the slot's number publishes its mail, its history, and all that the root wrote
///    before. The history covers this call and the calls with all earlier messages. A reader
///    compares it before it uses the mail. A root notices a divergence when it next waits: a sync
///    compares histories, and a peer that is ahead of a root considers itself a root.
/// 5. A chip's call stays in its ring until the others have passed the call's message, so that both
///    calls of a divergence can be named.
/// 6. A chip that goes to sleep reads `slot_woken`, then sets `slot_sleepers`. After a heavy fence
///    it checks once more, and sleeps while `slot_woken` doesn't change. A chip that posts, or
///    changes its word, issues a light fence and reads `slot_sleepers`. If it is set, the chip
///    clears it, increments `slot_woken` and wakes all. It does so after the sleeper set the flag,
///    and so after the sleeper read `slot_woken`, which therefore changes. Both words are in the
///    line of the group's first chip.

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

/// Returns the call that a chip made as its collective `number`, if the chip's ring has it. Ignores
/// calls whose message has a number above `last`.
std::optional<RecordedCall> read_slot_record(
    const SlotRing& ring, std::uint64_t number,
    std::uint64_t last = std::numeric_limits<std::uint64_t>::max());

/// A broadcast through slots, prepared for one chip of the group.
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
  /// Publishes how many messages the chip has passed. A reader calls this before it waits.
  void publish() const {
    own_->root.store(root_chip_, std::memory_order_relaxed);
    publish_messages(*progress_, *own_);
  }
  /// Returns whether a reader must publish that it has reached this message even without a wait.
  static bool is_published(std::uint64_t message) { return message % kPublishedEach == 0; }

  /// For a root: returns whether the ring has room, since the other chips have passed old messages.
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
  /// For a reader: returns whether the message has arrived.
  bool has_arrived(std::uint64_t message) const {
    return slot(message).message.load(std::memory_order_acquire) == message;
  }
  bool is_of_same_calls(std::uint64_t message) const {
    return slot(message).history.load(std::memory_order_relaxed) == progress_->history;
  }
  /// Copies the message, or at the root the source, to the chip's destination.
  void take(std::uint64_t message) const {
    if (!is_root_) {
      copy(destination_, slot(message).mail);
    } else if (source_ != destination_) {
      copy(destination_, source_);
    }
  }

  /// Returns the call with which the root posted a message that has arrived.
  std::optional<RecordedCall> posted_call(std::uint64_t message) const {
    return read_slot_record(*ring_, number(message));
  }
  /// For a root that hasn't posted: returns whether `peer` takes another chip for the root.
  bool has_diverged(const Peer& peer, std::uint64_t message) const;
  /// Returns whether this chip waits for `peer` at the message.
  bool is_awaited(const Peer& peer, std::uint64_t message) const;
  /// For a root: returns the number of the collective whose message is the next that `peer` must
  /// publish as passed; 0 if this chip isn't that message's root.
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
  /// Copies bytes_ bytes. A copy of a constant size is one instruction instead of a function call.
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
