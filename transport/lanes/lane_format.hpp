#pragma once
/// Format of the shared memory in which the processes of an actor system exchange messages and
/// blocks, version 4 (native byte order, little-endian hosts). A process of a system is a peer: a
/// slot of the table, and an incarnation, which counts the processes that have had the slot.
///
///   table = TableHeader PeerRow{kPeerCountMax}         "weft-<system>-peers"
///   mail  = MailHeader call{kCallCountMax} LedgerRow{kBlockCountMax} port{port_count}
///                                                      "weft-<system>-mail-<slot>.<incarnation>"
///   call  = u64: the number of a call of this process that waits for its answer; 0: none
///   port  = PortHead Lane{kPeerCountMax}               a lane for each slot that sends
///   heap  = the bytes of the blocks                    "weft-<system>-heap-<slot>.<incarnation>"
///
/// Entry n of a lane, counted from 1, is entries[(n - 1) % kLaneEntryCount]. The ledger, the lanes
/// and the heap are sparse: a page gets memory when it is reserved. Invariants: lane_node.hpp. A
/// change of the format needs a new version.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/lanes/lane_ids.hpp"

namespace weft {

inline constexpr std::uint64_t kPeerTableMagic = 0x3172'6565'7066'6577;  // "wefpeer1"
inline constexpr std::uint64_t kMailMagic = 0x316c'6961'6d66'6577;       // "wefmail1"
inline constexpr std::uint32_t kLaneVersion = 4;
inline constexpr std::uint32_t kPeerCountMax = 256;
inline constexpr std::uint32_t kPortCountMax = 64;
inline constexpr std::uint32_t kLaneEntryCount = 64;
inline constexpr std::uint32_t kBlockCountMax = 1U << 16U;
inline constexpr std::uint32_t kCallCountMax = 1U << 14U;
inline constexpr std::size_t kBlockBytesMin = 4096;
inline constexpr std::size_t kInlineBodyBytes = 88;
inline constexpr std::size_t kInlineBlockCount = 2;
inline constexpr std::size_t kBodyBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kMessageBlocksMax = 64;

struct TableHeader {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::uint32_t peer_count_max;
  std::atomic<std::uint32_t> deaths;  ///< how often the keeper has marked a peer dead
  std::byte reserved[108];
};
static_assert(sizeof(TableHeader) == 128);

/// The origin of a slot's process: the keeper started the process, or the process attached itself.
/// A process that is `leaving` takes no more messages and settles no deaths.
enum class PeerRole : std::uint32_t { started = 0, attached = 1, leaving = 2 };

struct alignas(64) PeerRow {
  std::atomic<std::uint32_t> life;  ///< a PeerLife; set by the keeper or a claiming process
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> role;  ///< a PeerRole
  std::atomic<std::uint32_t> host;  ///< the process's host; 0 in a system on one host
  std::byte reserved[48];
  /// settled[d] is the last incarnation of slot d whose death this peer has settled.
  std::atomic<std::uint32_t> settled[kPeerCountMax];
};
static_assert(sizeof(PeerRow) == 64 + 4 * kPeerCountMax);

struct MailHeader {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::uint32_t port_count;
  std::uint64_t heap_bytes;
  std::atomic<std::uint32_t> row_count;  ///< rows of the ledger that have been used
  std::uint32_t has_one_bell;            ///< 1: the bell of port 0 serves all ports
  std::byte reserved[96];
};
static_assert(sizeof(MailHeader) == 128);

struct alignas(64) LedgerRow {
  std::atomic<std::uint64_t> holders[kPeerCountMax / 64];  ///< a bit for each slot
  std::atomic<std::uint64_t> sets;
  std::atomic<std::uint64_t> offset;  ///< in bytes from the heap's start; set by the owner
  std::atomic<std::uint64_t> bytes;
  std::byte reserved[8];
};
static_assert(sizeof(LedgerRow) == 64);

struct Entry {
  std::atomic<std::uint64_t> number;  ///< storing it publishes the other fields
  std::uint64_t call;
  std::uint32_t target;
  std::uint32_t kind;
  std::uint32_t body_bytes;
  std::uint16_t block_count;
  std::uint16_t is_in_block;  ///< 1: body and block list are in block blocks[0], as a LongBody
  std::uint32_t blocks[kInlineBlockCount];
  std::byte body[kInlineBodyBytes];
};
static_assert(sizeof(Entry) == 128);

/// The head of a block that contains the body and the block list of a message that doesn't fit an
/// entry. After the head come the message's `block_count` BlockIds, then its body.
struct LongBody {
  std::uint32_t body_bytes;
  std::uint32_t block_count;
};

struct Lane {
  alignas(128) std::atomic<std::uint64_t> head;  ///< the number of the last entry that was taken
  std::atomic<std::uint32_t> sender_waits;       ///< 1: the taker must increment `room`
  std::atomic<std::uint32_t> room;               ///< the sender sleeps on this word
  alignas(128) Entry entries[kLaneEntryCount];
};
static_assert(sizeof(Lane) == 128 + 128 * kLaneEntryCount);

struct PortHead {
  /// A bit for each lane at which the taker looks. A sender sets it, and the taker clears it.
  alignas(128) std::atomic<std::uint64_t> watched[kPeerCountMax / 64];
  /// A bit for each lane whose memory is reserved. A sender sets it before its first entry; it is
  /// never cleared.
  std::atomic<std::uint64_t> opened[kPeerCountMax / 64];
  alignas(128) std::atomic<std::uint32_t> asleep;  ///< 1: the taker sleeps, so a sender must ring
  std::atomic<std::uint32_t> rung;                 ///< the taker sleeps on this word
};
static_assert(sizeof(PortHead) == 256);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::size_t calls_offset() { return sizeof(MailHeader); }
constexpr std::size_t ledger_offset() {
  return calls_offset() + kCallCountMax * sizeof(std::atomic<std::uint64_t>);
}
constexpr std::size_t port_offset(std::uint32_t port) {
  return ledger_offset() + kBlockCountMax * sizeof(LedgerRow) +
         port * (sizeof(PortHead) + kPeerCountMax * sizeof(Lane));
}
constexpr std::size_t lane_offset(std::uint32_t port, std::uint32_t sender) {
  return port_offset(port) + sizeof(PortHead) + sender * sizeof(Lane);
}
constexpr std::size_t mail_bytes(std::uint32_t port_count) { return port_offset(port_count); }

}  // namespace weft
