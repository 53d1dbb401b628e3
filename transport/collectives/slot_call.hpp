#pragma once
/// SlotCall: a broadcast of a few bytes, whose root puts them into a slot of its ring and goes on.
///
/// The messages of a group are counted from 1, whoever is their root. Invariants:
///
/// 1. All chips of a group see the same messages in the same order, and know the root of each.
///    Message m is in slot m % kSlotCount of its root's ring, which only the root writes.
/// 2. A chip whose word `messages` is m is through with all messages before m. Of m, it says that
///    its root has posted it, or that a reader waits for it. A reader that finds a message there
///    says so only each kSlotCount / 4 messages: a root that waits for room reads the word again
///    and again, and takes the line from its writer. The words go up, in 64 bits, and are reset
///    only with the rings, where a generation begins: so nobody takes a slot for one of another
///    message.
/// 3. A root posts message m when the word of every other chip is at least m - kSlotCount + 1: all
///    are through with what the slot held. It looks at the words only where it doesn't know that
///    already, and then goes on once they are at least m - kSlotCount / 2.
/// 4. The slot's number publishes its mail, its history, and all that the root has written before.
///    A reader compares the history, of this call and of those with all messages before, before it
///    uses the mail. A root learns of a divergence where it next waits: the history is part of a
///    sync's word, and a peer that is ahead of a root takes itself for one.
/// 5. What a chip called with a message that others aren't through with stays in its ring, so that
///    both calls of a divergence can be named.
/// 6. Sleepers read `slot_woken`, then set `slot_sleepers`; then comes a heavy fence; then they
///    look a last time, and sleep while `slot_woken` stays so. Who posts, or changes its word,
///    issues a light fence, looks at `slot_sleepers`, and if it is set clears it, counts
///    `slot_woken` up and wakes all. It is cleared after it was set, so `slot_woken` changes after
///    the sleeper read it. Both words are those of the group's first chip.

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

/// What a chip called as its collective of this number, if that is in its ring, with a message up
/// to `last`.
std::optional<RecordedCall> read_slot_record(
    const SlotRing& ring, std::uint64_t number,
    std::uint64_t last = std::numeric_limits<std::uint64_t>::max());

/// Of one chip.
class SlotCall {
 public:
  /// Reserves the rings of the chip and of the root. Throws no_space.
  SlotCall(const CollectiveCall& call, Group& group, JobMemory& memory);

  bool is_root() const { return is_root_; }
  int root() const { return root_; }  ///< its index in the group

  /// The chip's next message.
  std::uint64_t begin(std::uint64_t signature) const {
    progress_->history += signature;
    return ++progress_->messages;
  }
  /// Says how far the chip is. Of a reader, before it waits.
  void publish() const {
    own_->root.store(root_chip_, std::memory_order_relaxed);
    publish_messages(*progress_, *own_);
  }
  /// Of a reader: whether it has to publish the message even where that is there.
  static bool is_published(std::uint64_t message) { return message % kPublishedEach == 0; }

  /// Of a root: whether the others have left room for the message.
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
  /// Of a reader.
  bool has_arrived(std::uint64_t message) const {
    return slot(message).message.load(std::memory_order_acquire) == message;
  }
  bool is_of_same_calls(std::uint64_t message) const {
    return slot(message).history.load(std::memory_order_relaxed) == progress_->history;
  }
  /// Puts what has arrived into the reader's destination; the root's source into its own.
  void take(std::uint64_t message) const {
    if (!is_root_) {
      copy(destination_, slot(message).mail);
    } else if (source_ != destination_) {
      copy(destination_, source_);
    }
  }

  /// What the root called with a message that has arrived.
  std::optional<RecordedCall> posted_call(std::uint64_t message) const {
    return read_slot_record(*ring_, number(message));
  }
  /// Of a root that hasn't posted the message: whether the peer has another root for it.
  bool has_diverged(const Peer& peer, std::uint64_t message) const;
  /// Whether it is a peer for which the chip waits.
  bool is_awaited(const Peer& peer, std::uint64_t message) const;
  /// Of a root: the number of the collective with the first message that the peer must publish and
  /// hasn't; 0: it wasn't this chip's.
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
  /// A copy of a size that the compiler knows is an instruction, another a call.
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
  SlotRing* ring_;  ///< of the root
  std::size_t bytes_;
  const std::byte* source_;
  std::byte* destination_;
};

}  // namespace weft
