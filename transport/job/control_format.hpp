#pragma once
/// The format of the control segment, version 3 (native byte order):
///
///   control     = header chip{num_chips}
///   header      = ControlHeader, 4096 bytes
///   chip        = group_line{num_masks} commit_line gap call_record
///   group_line  = GroupLine, 128 bytes: the chip's word in the group of `mask`
///   commit_line = CommitLine, 128 bytes: the progress of the chip's state
///   call_record = CallRecord, 128 bytes: the last call of the chip
///
/// The lines of each chip are on pages of their own: processors prefetch cache lines up to the end
/// of a page, and a line that was prefetched from its writer must be transferred back. A mask is an
/// AtomMask without its bit 0, which no atom has: mask >> 1. Every atom has at least size 2, so
/// num_chips chips have at most floor(log2(num_chips)) atoms, and num_masks is 2 to that power.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft {

inline constexpr std::uint64_t kControlMagic = 0x316c'7463'7466'6577;  // "weftctl1"
inline constexpr std::uint32_t kControlVersion = 3;
inline constexpr int kLocalChipCountMax = 256;  ///< largest number of chips of a job on one host
/// Size of a mailbox in bytes. algorithm.hpp says which transfers use mailboxes.
inline constexpr std::size_t kMailboxBytes = 16384;
/// Size in bytes of the mailbox in a GroupLine, and of a message in a ring.
inline constexpr std::size_t kLineMailboxBytes = 16;
/// The number of slots of a ring. A root is at most this many messages ahead of a reader.
inline constexpr std::uint64_t kSlotCount = 64;

enum class AbortState : std::uint32_t { running = 0, writing_reason = 1, aborted = 2 };

struct ControlHeader {
  std::atomic<std::uint64_t> magic;  ///< written last, and publishes the fields below
  std::uint32_t version;
  std::int32_t num_chips;
  std::uint64_t arena_capacity;
  std::atomic<std::uint32_t> generation;
  std::atomic<AbortState> abort_state;  ///< `aborted` publishes abort_reason
  std::atomic<std::uint64_t> abort_reason[200 / 8];
  std::uint32_t crowded;   ///< 1: there are more chips than cores
  char control_root[512];  ///< the folder with the job's lock; "": unknown
  std::byte reserved[4096 - 236 - 512];
};
static_assert(sizeof(ControlHeader) == 4096);

/// The last call of a chip. Only that chip writes it; others read it after an error. The words
/// aren't ordered, so a reader trusts a record only if `signature` matches its words.
struct alignas(128) CallRecord {
  static constexpr std::size_t kWordCount = 7;
  static constexpr std::size_t kNameWordCount = 7;
  std::atomic<std::uint64_t> number;  ///< stored with release, after the collective was announced
  std::atomic<std::uint64_t> words[kWordCount];
  std::atomic<std::uint64_t> name[kNameWordCount];
  std::atomic<std::uint64_t> signature;
};
static_assert(sizeof(CallRecord) == 128);

/// A chip's words for one group, which the group's chips read. Only the chip itself writes the
/// first half. The invariants are in shared_memory_tier.cpp.
struct alignas(128) GroupLine {
  /// Upper half: the epoch, which is the number of syncs announced so far. Lower half: a part of
  /// the signature of the last sync's call. A store to this word publishes the mailboxes, and all
  /// that the chip has read and written before in its own and other arenas.
  std::atomic<std::uint64_t> announced;
  std::byte mailbox[2][kLineMailboxBytes];  ///< the mailbox of epoch e is at e % 2
  /// The number of the group's message that the chip has reached; see slot_call.hpp.
  std::atomic<std::uint64_t> messages;
  std::atomic<std::uint64_t> history;  ///< digest of the calls with the messages up to `messages`
  std::atomic<std::uint32_t> root;     ///< the chip that posts message `messages`

  /// Used only in the line of the group's first chip; any chip of the group may write these two
  /// words. Chips sleep on `woken`, which is the sync at which sleepers were last woken.
  alignas(64) std::atomic<std::uint32_t> woken;
  std::atomic<std::uint32_t> sleepers;
  /// For chips that wait for a message, or for room for a message. `slot_woken` is incremented at
  /// each wake; `slot_sleepers` is 1 if a chip has gone to sleep since the last wake.
  std::atomic<std::uint32_t> slot_woken;
  std::atomic<std::uint32_t> slot_sleepers;
  std::atomic<std::uint32_t> has_ring;  ///< 1: the chip's ring is reserved
};
static_assert(sizeof(GroupLine) == 128);
constexpr std::uint32_t epoch_of(std::uint64_t announced) {
  return static_cast<std::uint32_t>(announced >> 32);
}
/// Returns whether the announced epoch is `epoch` or later. Epochs may wrap around.
constexpr bool has_reached(std::uint64_t announced, std::uint32_t epoch) {
  return static_cast<std::int32_t>(epoch_of(announced) - epoch) >= 0;
}
inline bool has_reached(const GroupLine& line, std::uint32_t epoch) {
  return has_reached(line.announced.load(std::memory_order_acquire), epoch);
}

/// A message, written by the chip that owns the ring. Two slots share a cache line, so a reader
/// that is behind gets two messages with one transfer.
struct alignas(32) MessageSlot {
  std::atomic<std::uint64_t> message;  ///< number in the group, from 1; publishes the other fields
  std::atomic<std::uint64_t> history;  ///< digest of the calls up to this message
  std::byte mail[kLineMailboxBytes];
};
static_assert(sizeof(MessageSlot) == 32);

/// The call with which the chip posted a slot's message. Valid only if `signature` matches it.
struct alignas(128) SlotRecord {
  std::atomic<std::uint64_t> number;  ///< number of the collective among the chip's collectives
  std::atomic<std::uint64_t> signature;
  std::atomic<std::uint64_t> words[CallRecord::kWordCount];
  std::atomic<std::uint64_t> name[CallRecord::kNameWordCount];
};

/// The messages of one chip to a group; message m is in slot m % kSlotCount. Each ring has its own
/// pages, after the chip's arena. See slot_call.hpp.
struct SlotRing {
  MessageSlot slots[kSlotCount];
  SlotRecord records[kSlotCount];
};
inline constexpr std::size_t kSlotRingBytes = 12288;
static_assert(sizeof(SlotRing) <= kSlotRingBytes);
/// A chip's progress, which all chips read (commits.hpp). Only the chip itself writes the first
/// half.
struct alignas(128) CommitLine {
  std::atomic<std::uint64_t> step;
  std::atomic<std::uint64_t> bodies;  ///< on_each_chip() bodies ended by the chip, or kLoopEnded
  std::atomic<std::uint64_t> far;     ///< the least step that the chip's twins have committed
  alignas(64) std::atomic<std::uint32_t> woken;  ///< written by any chip that waits for this chip
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(CommitLine) == 128);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<AbortState>::is_always_lock_free);

constexpr std::size_t group_mask_count(int num_chips) {
  return std::size_t{1} << (std::bit_width(static_cast<unsigned>(num_chips)) - 1);
}

/// Returns how many bytes each chip has in the segment: its group lines, its commit line, a gap of
/// at least 128 bytes, and its call record at the end of the last page.
constexpr std::size_t control_bytes_per_chip(int num_chips) {
  const std::size_t lines = group_mask_count(num_chips) * sizeof(GroupLine);
  return (lines + sizeof(CommitLine) + 128 + sizeof(CallRecord) + 4095) / 4096 * 4096;
}

constexpr std::size_t control_bytes(int num_chips) {
  return sizeof(ControlHeader) +
         static_cast<std::size_t>(num_chips) * control_bytes_per_chip(num_chips);
}

}  // namespace weft
