#pragma once
/// Format of the control segment, version 3 (native byte order):
///
///   control     = header chip{num_chips}
///   header      = ControlHeader, 4096 bytes
///   chip        = group_line{num_masks} commit_line gap call_record
///   group_line  = GroupLine, 128 bytes: the chip's word in the group of `mask`
///   commit_line = CommitLine, 128 bytes: the progress of the chip's state
///   call_record = CallRecord, 128 bytes: the last call of the chip
///
/// A chip's lines are on pages of their own. Processors prefetch cache lines up to the end of a
/// page, and a line prefetched from its writer must be transferred back. A mask is an AtomMask
/// without its bit 0, which no atom has: mask >> 1. Every atom is at least 2, so num_chips chips
/// have at most floor(log2(num_chips)) atoms, and num_masks is 2 to that power.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft {

inline constexpr std::uint64_t kControlMagic = 0x316c'7463'7466'6577;  // "weftctl1"
inline constexpr std::uint32_t kControlVersion = 3;
inline constexpr int kLocalChipCountMax = 256;  ///< chips of one job on one host
/// Bytes of a mailbox. algorithm.hpp says which transfers use mailboxes.
inline constexpr std::size_t kMailboxBytes = 16384;
/// Bytes of a mailbox for scalars, in the cache line that announces it, and of a ring's message.
inline constexpr std::size_t kLineMailboxBytes = 16;
/// The number of slots of a ring. A root is never further ahead of a reader.
inline constexpr std::uint64_t kSlotCount = 64;

enum class AbortState : std::uint32_t { running = 0, writing_reason = 1, aborted = 2 };

struct ControlHeader {
  std::atomic<std::uint64_t> magic;  ///< written last: publishes what follows
  std::uint32_t version;
  std::int32_t num_chips;
  std::uint64_t arena_capacity;
  std::atomic<std::uint32_t> generation;
  std::atomic<AbortState> abort_state;  ///< `aborted` publishes abort_reason
  std::atomic<std::uint64_t> abort_reason[200 / 8];
  std::uint32_t crowded;   ///< 1: there are more chips than cores
  char control_root[512];  ///< folder of the job's lock; "": unknown
  std::byte reserved[4096 - 236 - 512];
};
static_assert(sizeof(ControlHeader) == 4096);

/// Written by one chip, read by others after an error. The words have no ordering; a reader trusts
/// a record only if `signature` matches its words.
struct alignas(128) CallRecord {
  static constexpr std::size_t kWordCount = 7;
  static constexpr std::size_t kNameWordCount = 7;
  std::atomic<std::uint64_t> number;  ///< stored with release, after its collective was announced
  std::atomic<std::uint64_t> words[kWordCount];
  std::atomic<std::uint64_t> name[kNameWordCount];
  std::atomic<std::uint64_t> signature;
};
static_assert(sizeof(CallRecord) == 128);

/// The chips of a group read it; one chip writes the first half. Invariants: see
/// shared_memory_tier.cpp.
struct alignas(128) GroupLine {
  /// Upper half: the epoch, the number of syncs announced so far. Lower half: part of the signature
  /// of the last sync's call. The store publishes the mailboxes, and all earlier reads and writes
  /// of the chip in its own and other arenas.
  std::atomic<std::uint64_t> announced;
  std::byte mailbox[2][kLineMailboxBytes];  ///< for epoch e, the one at e % 2
  /// How far the chip is in the group's messages: see slot_call.hpp.
  std::atomic<std::uint64_t> messages;
  std::atomic<std::uint64_t> history;  ///< a digest of the calls with all these messages
  std::atomic<std::uint32_t> root;     ///< the chip that posts the last of these messages

  /// Used in the line of the group's first chip; any chip of the group writes it. These are the
  /// sync for which sleepers were last woken (they sleep on this word), and the number of sleepers.
  alignas(64) std::atomic<std::uint32_t> woken;
  std::atomic<std::uint32_t> sleepers;
  /// The same for chips that wait for a message, or for room for one. `slot_woken` is incremented
  /// at each wake; `slot_sleepers` is 1 if a chip has gone to sleep since.
  std::atomic<std::uint32_t> slot_woken;
  std::atomic<std::uint32_t> slot_sleepers;
  std::atomic<std::uint32_t> has_ring;  ///< the chip's ring is reserved; generations clear it
};
static_assert(sizeof(GroupLine) == 128);
constexpr std::uint32_t epoch_of(std::uint64_t announced) {
  return static_cast<std::uint32_t>(announced >> 32);
}
/// Whether the epoch is reached. Epochs may wrap.
constexpr bool has_reached(std::uint64_t announced, std::uint32_t epoch) {
  return static_cast<std::int32_t>(epoch_of(announced) - epoch) >= 0;
}
inline bool has_reached(const GroupLine& line, std::uint32_t epoch) {
  return has_reached(line.announced.load(std::memory_order_acquire), epoch);
}

/// A message. Two of them share a cache line, so a reader that is behind gets both by one transfer.
/// The ring's chip writes it.
struct alignas(32) MessageSlot {
  std::atomic<std::uint64_t> message;  ///< its number in the group, from 1; publishes the others
  std::atomic<std::uint64_t> history;  ///< digest of the calls with this message and all before it
  std::byte mail[kLineMailboxBytes];
};
static_assert(sizeof(MessageSlot) == 32);

/// The chip's call with the message of a slot. It is trusted only if `signature` matches.
struct alignas(128) SlotRecord {
  std::atomic<std::uint64_t> number;  ///< number of the collective among the chip's own
  std::atomic<std::uint64_t> signature;
  std::atomic<std::uint64_t> words[CallRecord::kWordCount];
  std::atomic<std::uint64_t> name[CallRecord::kNameWordCount];
};

/// The messages of one chip to a group: message m is in slot m % kSlotCount. The ring is on pages
/// of its own, after the chip's arena. See slot_call.hpp.
struct SlotRing {
  MessageSlot slots[kSlotCount];
  SlotRecord records[kSlotCount];
};
inline constexpr std::size_t kSlotRingBytes = 12288;
static_assert(sizeof(SlotRing) <= kSlotRingBytes);

/// One chip writes it, and all read it: see commits.hpp.
struct alignas(128) CommitLine {
  std::atomic<std::uint64_t> step;
  std::atomic<std::uint64_t> bodies;  ///< on_each_chip() bodies that it has left, or kLoopEnded
  alignas(64) std::atomic<std::uint32_t> woken;  ///< any chip that waits for this one writes it
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(CommitLine) == 128);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<AbortState>::is_always_lock_free);

constexpr std::size_t group_mask_count(int num_chips) {
  return std::size_t{1} << (std::bit_width(static_cast<unsigned>(num_chips)) - 1);
}

/// The bytes of a chip's memory: its group lines, its commit line, a gap of at least 128 bytes, and
/// its call record at the end of whole pages.
constexpr std::size_t control_bytes_per_chip(int num_chips) {
  const std::size_t lines = group_mask_count(num_chips) * sizeof(GroupLine);
  return (lines + sizeof(CommitLine) + 128 + sizeof(CallRecord) + 4095) / 4096 * 4096;
}

constexpr std::size_t control_bytes(int num_chips) {
  return sizeof(ControlHeader) +
         static_cast<std::size_t>(num_chips) * control_bytes_per_chip(num_chips);
}

}  // namespace weft
