#pragma once
/// The format of the box's segment, version 2 (native byte order, little-endian hosts):
///
///   box     = header process{1 + num_workers} chip{num_chips}     process 0: the trainer
///   header  = BoxHeaderV2, 4096 bytes
///   process = heads text records{4096} records{1024} records{1024}    its loop, its link's actor,
///   heads   = RingHead{3}, 4096 bytes                                 its other threads
///   text    = TextAreaV2, 256 KiB
///   chip    = ChipPageV2 records{4096} ledger{256}
///   records = RecordV2, 32 bytes                 event number n of a ring is record n % capacity
///   ledger  = LedgerEntryV2, 128 bytes
///
/// A record's words, low bits first:
///   0  tick, written last; 0: no event; 1: a thread that shares the ring is writing
///   1  kind:8 flags:8 peer:16 text:32            peer 0xffff: none
///   2  number:48 step:16                         the low bits of the step
///   3  value                                     ticks for `leave`, else as event.hpp says
///
/// A text is its length in two bytes, then its bytes in UTF-8. Its id is the number of its process
/// times kTextBytes, plus its place in the text area; 0: no text. Texts are never removed.
///
/// The memory of a process or chip exists when its bit in `present` is set. A change of the format
/// needs a new version; golden file: tests/golden/box-v2.bin.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft::box_format {

inline constexpr std::uint64_t kMagic = 0x3178'6f62'7466'6577;  // "weftbox1" in all versions
inline constexpr std::uint32_t kVersion = 2;
inline constexpr int kWorkerCountMax = 1024;  ///< workers of a job, on all hosts
inline constexpr int kChipCountMax = 4096;    ///< chips of a job, on all hosts
inline constexpr std::uint32_t kChipRecords = 4096;
inline constexpr std::uint32_t kLoopRecords = 4096;
inline constexpr std::uint32_t kLinkRecords = 1024;
inline constexpr std::uint32_t kSharedRecords = 1024;
inline constexpr std::uint32_t kLedgerEntries = 256;
inline constexpr std::uint32_t kTextBytes = 256 * 1024;
inline constexpr std::uint32_t kClockPairs = 64;
inline constexpr std::uint16_t kNoPeer = 0xffff;
inline constexpr std::uint64_t kBusy = 1;  ///< word 0 of a record that is being written

struct ClockPairV2 {
  std::uint64_t tick;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

struct BoxHeaderV2 {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t record_bytes;
  std::int32_t num_workers;
  std::int32_t num_chips;
  std::uint32_t clock;  ///< source of ticks: 0 CLOCK_MONOTONIC in ns, 1 the processor's counter
  std::uint32_t level;  ///< TraceLevel; may be changed at any time
  std::uint32_t zero;
  char job[64];
  char host[64];
  char boot_id[40];
  std::uint64_t present[81];    ///< bit n: process n exists; bit 1 + num_workers + n: chip n exists
  std::uint64_t pair_sequence;  ///< odd while a clock pair is written
  std::uint64_t pair_count;     ///< clock pairs ever written; the first and the last 63 are stored
  ClockPairV2 pairs[kClockPairs];
  char reserved[1688];
};
static_assert(sizeof(BoxHeaderV2) == 4096);
static_assert(offsetof(BoxHeaderV2, pairs) == 872);
static_assert(64 * sizeof(BoxHeaderV2::present) / 8 >= 1 + kWorkerCountMax + kChipCountMax);

struct RecordV2 {
  std::uint64_t words[4];
};
static_assert(sizeof(RecordV2) == 32);

/// The state of a ring. Only the ring's owner writes it.
struct alignas(128) RingHead {
  std::uint64_t next;      ///< number of the next event, and so of all events written
  std::uint64_t step;      ///< the owner's step
  std::uint64_t position;  ///< the plan's current step: text:32, index:32
};
static_assert(sizeof(RingHead) == 128);

struct TextAreaV2 {
  std::uint64_t used;  ///< used bytes of the area, including this word
  char bytes[kTextBytes - 8];
};
static_assert(sizeof(TextAreaV2) == kTextBytes);

struct ProcessPageV2 {
  RingHead loop;
  RingHead link;
  RingHead shared;
  char reserved[4096 - 3 * sizeof(RingHead)];
};
static_assert(sizeof(ProcessPageV2) == 4096);

struct ChipPageV2 {
  RingHead head;
  char reserved[4096 - sizeof(RingHead)];
  /// By chip: how many ticks this chip waited for that chip.
  std::uint64_t waited_for[kChipCountMax];
};
static_assert(sizeof(ChipPageV2) == 4096 + 8 * kChipCountMax);

/// The waits of a chip in one collective call of a plan. Only that chip writes the entry.
struct LedgerEntryV2 {
  static constexpr std::uint32_t kBuckets = 25;
  std::uint64_t count;
  std::uint64_t times_last;  ///< how often this chip came last
  std::uint64_t waited;      ///< in ticks
  std::uint32_t text;
  /// histogram[b] is the number of waits of 2^(b + 7) to 2^(b + 8) ticks. The first bucket also
  /// counts shorter waits, the last one also longer waits.
  std::uint32_t histogram[kBuckets];
};
static_assert(sizeof(LedgerEntryV2) == 128);

inline constexpr std::size_t kProcessBytes =
    sizeof(ProcessPageV2) + sizeof(TextAreaV2) +
    sizeof(RecordV2) * (kLoopRecords + kLinkRecords + kSharedRecords);
inline constexpr std::size_t kChipBytes =
    sizeof(ChipPageV2) + sizeof(RecordV2) * kChipRecords + sizeof(LedgerEntryV2) * kLedgerEntries;
static_assert(kProcessBytes % 4096 == 0 && kChipBytes % 4096 == 0);
static_assert(std::is_trivially_copyable_v<BoxHeaderV2>);

constexpr std::size_t process_offset(int process) {
  return sizeof(BoxHeaderV2) + kProcessBytes * static_cast<std::size_t>(process);
}
constexpr std::size_t chip_offset(int num_workers, int chip) {
  return process_offset(1 + num_workers) + kChipBytes * static_cast<std::size_t>(chip);
}
constexpr std::size_t box_bytes(int num_workers, int num_chips) {
  return chip_offset(num_workers, num_chips);
}

}  // namespace weft::box_format
