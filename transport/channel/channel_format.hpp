#pragma once
/// The format of a channel's segment, version 1 (native byte order, little-endian hosts):
///
///   channel = header side{writer} side{reader} lane{published} lane{returned} padding
///             slot{slot_count}
///   header  = ChannelHeader, 128 bytes
///   side    = ChannelSide, 256 bytes
///   lane    = word{slot_count + 1}
///   word    = ChannelWord, 64 bytes
///   slot    = slot_bytes, a multiple of 64; the first begins at a multiple of 128
///
/// Message n of a lane, counted from 1, is in word (n - 1) % (slot_count + 1). channel_port.cpp
/// lists the invariants. A change of the format needs a new version; golden file: channel-v1.bin.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft {

inline constexpr std::uint64_t kChannelMagic = 0x316e'6863'7466'6577;  // "weftchn1"
inline constexpr std::uint32_t kChannelVersion = 1;
inline constexpr std::uint32_t kSlotCountMax = 256;
inline constexpr std::uint64_t kSlotBytesMax = std::uint64_t{1} << 40;
inline constexpr std::size_t kSlotAlignment = 64;  ///< shard frames require it

struct ChannelHeader {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::uint32_t slot_count;
  std::uint64_t slot_bytes;
  std::byte reserved[104];
};
static_assert(sizeof(ChannelHeader) == 128);
static_assert(std::is_trivially_copyable_v<ChannelHeader>);

/// A side of a channel. While a side lives, it locks one byte of the file: the byte whose number is
/// the number of its role.
enum class ChannelRole : std::uint32_t { writer = 0, reader = 1 };

/// The fields of one side. Only this side writes them.
struct alignas(128) ChannelSide {
  std::atomic<std::uint32_t> attached;  ///< stored as 1 after `pid`, and never 0 again
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> asleep;  ///< 1: the sender of a message must wake this side
  std::atomic<std::uint32_t> user;    ///< the word of a PipeUser, in pipes of actors; 0: unknown
  /// The number of the frame that the writer filled last. The reader reads it when the writer is
  /// gone. It is in another cache line than `asleep`, which the reader loads after every frame.
  alignas(128) std::atomic<std::uint64_t> filling;
};
static_assert(sizeof(ChannelSide) == 256);

/// A message that passes a slot to the other side. Only the sender writes to the word.
struct alignas(64) ChannelWord {
  /// The low 32 bits of the message's number; 0 before the first message. Storing this word
  /// publishes the other fields, and whatever the sender read and wrote in the slot.
  std::atomic<std::uint32_t> number;
  std::atomic<std::uint32_t> slot;   ///< number of the slot, or a ChannelEnd
  std::atomic<std::uint64_t> bytes;  ///< size of the slot's frame; 0 in the lane `returned`
};
static_assert(sizeof(ChannelWord) == 64);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The values that the last message of a lane has instead of the number of a slot.
enum class ChannelEnd : std::uint32_t {
  abandoned = 0xffff'fffe,  ///< the side was destroyed without a call of close()
  closed = 0xffff'ffff,
};

constexpr std::size_t lane_offset(ChannelRole sender, std::uint32_t slot_count) {
  const std::size_t lanes = sizeof(ChannelHeader) + 2 * sizeof(ChannelSide);
  return lanes + static_cast<std::size_t>(sender) * (slot_count + 1) * sizeof(ChannelWord);
}
constexpr std::size_t slots_offset(std::uint32_t slot_count) {
  // The two lanes together have an even number of words, so the slots begin at a multiple of 128.
  return lane_offset(ChannelRole::reader, slot_count) + (slot_count + 1) * sizeof(ChannelWord);
}
static_assert(slots_offset(1) % 128 == 0 && slots_offset(2) % 128 == 0);

constexpr std::size_t channel_bytes(std::uint32_t slot_count, std::uint64_t slot_bytes) {
  return slots_offset(slot_count) + slot_count * slot_bytes;
}

}  // namespace weft
