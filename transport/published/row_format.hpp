#pragma once
/// Format of the shared memory in which processes of the user give rows to a job, version 2 (native
/// byte order, little-endian hosts).
///
///   rows = RowHeader TensorEntry{field_count} names
///          RowBlock{block_count} Arrival{block_count} RowChunk{block_count} block{block_count}
///                                                             "weft-<job>-rows-<name>"
///
/// The parts begin at multiples of 4096. A block has `rows_per_block` rows. A chunk is a chain of
/// blocks whose rows arrive together. Its row i is in the block that is i / rows_per_block after
/// the first.
///
/// Invariants:
/// 1. A sender takes free blocks by writing its number + 1 to their `owner`. They are the sender's
///    until their chunk has arrived. A chunk arrives when the word of its first block is stored in
///    the next free arrival, by one compare-and-swap.
/// 2. Only worker 0 takes arrivals, in their order. It marks the blocks kTakenBlock, writes the
///    chunk, increments `chunks`, and then `taken`. A chunk stores the number of its arrival, so a
///    successor of a killed worker 0 doesn't take an arrival twice.
/// 3. Worker 0 first counts a chunk as released or dropped, and then frees its blocks. So a taken
///    block that belongs to no chunk and to no arrival may be freed (RowOrder::collect()).
/// 4. A sender locks its byte of the file as long as it lives (LifeLock). A dead sender's blocks
///    that belong to no arrival may be freed.
/// 5. At most block_count chunks and arrivals exist at any time, because each has a block. So the
///    rings never overflow.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/published/published_format.hpp"

namespace weft {

inline constexpr std::uint64_t kRowMagic = 0x3173'776f'7266'6577;  // "wefrows1"
inline constexpr std::uint32_t kRowFormat = 2;
inline constexpr std::uint32_t kSenderCountMax = 256;
inline constexpr std::uint32_t kRowBlocksMax = 1U << 22U;
inline constexpr std::uint64_t kTakenBlock = ~std::uint64_t{0};
inline constexpr std::uint64_t kNoLagLimit = ~std::uint64_t{0};
inline constexpr std::size_t kRowAlignment = 8;

/// A process that gives rows.
struct RowSenderRow {
  /// The process that has the sender's number, or had it last; 0: no process has had the number.
  std::atomic<std::int32_t> pid;
  std::byte reserved[4];
  std::atomic<std::int64_t> sent_ns;  ///< CLOCK_MONOTONIC of its last rows; 0: it has sent none
};
static_assert(sizeof(RowSenderRow) == 16);

struct RowHeader {
  std::uint64_t magic;  ///< written last
  std::uint32_t format;
  std::uint32_t field_count;
  std::uint64_t name_bytes;
  std::uint64_t row_bytes;
  std::uint32_t rows_per_block;
  std::uint32_t block_count;
  std::uint64_t max_lag;
  std::uint32_t worker_count;
  std::byte reserved[76];
  char control_root[512];  ///< the folder with the job's lock; "": unknown

  /// Senders write the next three words. `tail` is at most the number of arrivals.
  alignas(128) std::atomic<std::uint64_t> tail;
  std::atomic<std::uint64_t> sent_rows;
  std::atomic<std::uint64_t> sender_waits;  ///< how often a sender has found no free block
  /// Loaders write here how many rows they need.
  alignas(128) std::atomic<std::uint64_t> wanted;
  alignas(128) std::atomic<std::uint32_t> calls;  ///< incremented when worker 0 has something to do
  /// used[w]: how many rows the ended steps of worker w have used.
  alignas(128) std::atomic<std::uint64_t> used[kPublishingWorkersMax];
  RowSenderRow senders[kSenderCountMax];  ///< by the sender's number, which it writes itself
  /// Worker 0 writes all words from here on. `base` is the first row that the job needs; kNoRow
  /// until that is known.
  alignas(128) std::atomic<std::uint64_t> base;
  std::atomic<std::uint64_t> taken;              ///< arrivals that worker 0 has taken
  std::atomic<std::uint64_t> chunks;             ///< chunks that became readable
  std::atomic<std::uint64_t> rows;               ///< the number of the row that arrives next
  std::atomic<std::uint64_t> batch_rows;         ///< rows of a batch; 0: unknown
  std::atomic<std::uint64_t> released;           ///< chunks that aren't needed any more
  std::atomic<std::uint64_t> step;               ///< the loop's step
  std::atomic<std::uint64_t> dropped_rows;       ///< rows dropped because of their lag
  std::atomic<std::uint64_t> lag;                ///< the lag of the last taken chunk
  alignas(128) std::atomic<std::uint32_t> news;  ///< counts changes of `chunks` and freed blocks
};
inline constexpr std::uint64_t kNoRow = ~std::uint64_t{0};

struct RowBlock {
  std::atomic<std::uint64_t> owner;    ///< 0: free; a sender's number + 1; or kTakenBlock
  std::atomic<std::uint32_t> next;     ///< the index of the chunk's next block + 1; 0: last block
  std::atomic<std::uint32_t> rows;     ///< in the first block: the chunk's rows
  std::atomic<std::uint64_t> version;  ///< in the first block: the version that made the rows
  std::byte reserved[8];
};
static_assert(sizeof(RowBlock) == 32);

/// One word with the number of an arrival, counted from 1, and the first block of its chunk.
/// Arrival n is in place (n - 1) % block_count.
struct ArrivalWord {
  std::uint64_t number = 0;
  std::uint32_t block = 0;

  static ArrivalWord of(std::uint64_t word) {
    return {.number = word >> 24U, .block = static_cast<std::uint32_t>(word & 0xff'ffffU)};
  }
  std::uint64_t word() const { return number << 24U | block; }
};

struct RowChunk {
  std::uint64_t arrival;
  std::uint64_t first_row;
  std::uint32_t rows;
  std::uint32_t block;  ///< the chunk's first block
};

}  // namespace weft
