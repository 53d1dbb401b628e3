#pragma once
/// Format of the control segment, version 2 (native byte order):
///
///   control     = header chip{num_chips}
///   header      = ControlHeader, 4096 bytes
///   chip        = group_line{num_masks} commit_line gap call_record
///   group_line  = GroupLine, 128 bytes: the chip's word in the group of `mask`
///   commit_line = CommitLine, 128 bytes: how far the chip's state has come
///   call_record = CallRecord, 128 bytes: what the chip called last
///
/// What a chip writes has pages of its own, to the end: processors fetch lines ahead, but not over
/// the end of a page, and a line that is taken from its writer for nothing has to come back.
///
/// A mask is an AtomMask without its bit 0, which no atom has: mask >> 1. Every atom is at least 2,
/// so num_chips chips have at most floor(log2(num_chips)) atoms, and num_masks is 2 to that power.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft {

inline constexpr std::uint64_t kControlMagic = 0x316c'7463'7466'6577;  // "weftctl1"
inline constexpr std::uint32_t kControlVersion = 2;
/// Chips of one job on one host.
inline constexpr int kLocalChipCountMax = 256;
/// A mailbox. What goes through mailboxes, and not in place: algorithm.hpp.
inline constexpr std::size_t kMailboxBytes = 16384;
/// A mailbox for scalars, in the line that says that it is full.
inline constexpr std::size_t kLineMailboxBytes = 16;

enum class AbortState : std::uint32_t { running = 0, writing_reason = 1, aborted = 2 };

struct ControlHeader {
  std::atomic<std::uint64_t> magic;  ///< written last: publishes what follows
  std::uint32_t version;
  std::int32_t num_chips;
  std::uint64_t arena_capacity;
  std::atomic<std::uint32_t> generation;
  std::atomic<AbortState> abort_state;  ///< `aborted` publishes abort_reason
  std::atomic<std::uint64_t> abort_reason[200 / 8];
  std::uint32_t crowded;  ///< 1: there are more chips than cores
  std::byte reserved[4096 - 236];
};
static_assert(sizeof(ControlHeader) == 4096);

/// Written by one chip, read by the others when something is wrong. The words carry no order; a
/// reader trusts a record whose `signature` is the one of its words.
struct alignas(128) CallRecord {
  static constexpr std::size_t kWordCount = 7;
  static constexpr std::size_t kNameWordCount = 7;
  std::atomic<std::uint64_t> number;  ///< released after the announcement of its collective
  std::atomic<std::uint64_t> words[kWordCount];
  std::atomic<std::uint64_t> name[kNameWordCount];
  std::atomic<std::uint64_t> signature;
};
static_assert(sizeof(CallRecord) == 128);

/// Read by the chips of a group; the first half is written by one. Invariants: communicator.cpp.
struct alignas(128) GroupLine {
  /// Epoch, the number of syncs announced so far, in the upper half; in the lower what is left of
  /// the signature of the call that the last of them is of. Publishes the mailboxes, and all that
  /// the chip read and wrote in its arena and the others' before it.
  std::atomic<std::uint64_t> announced;
  std::byte mailbox[2][kLineMailboxBytes];  ///< of epoch e, at e % 2

  /// Of the group's first chip, and written by any of the group: the sync for which sleepers were
  /// last woken, on which they sleep, and how many there are.
  alignas(64) std::atomic<std::uint32_t> woken;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(GroupLine) == 128);

/// Written by one chip, read by all: see commits.hpp.
struct alignas(128) CommitLine {
  std::atomic<std::uint64_t> step;
  /// Written by any chip that waits for this one.
  alignas(64) std::atomic<std::uint32_t> woken;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(CommitLine) == 128);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<AbortState>::is_always_lock_free);

constexpr std::size_t group_mask_count(int num_chips) {
  return std::size_t{1} << (std::bit_width(static_cast<unsigned>(num_chips)) - 1);
}

/// Of a chip: its lines, a gap of 128 bytes at least, its record at the end of whole pages.
/// Behind the lines of its groups stands the line of its commits.
constexpr std::size_t control_bytes_per_chip(int num_chips) {
  const std::size_t lines = group_mask_count(num_chips) * sizeof(GroupLine);
  return (lines + sizeof(CommitLine) + 128 + sizeof(CallRecord) + 4095) / 4096 * 4096;
}

constexpr std::size_t control_bytes(int num_chips) {
  return sizeof(ControlHeader) +
         static_cast<std::size_t>(num_chips) * control_bytes_per_chip(num_chips);
}

}  // namespace weft
