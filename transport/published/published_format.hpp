#pragma once
/// Format of the shared memory in which a job publishes versions of tensors, version 2 (native byte
/// order, little-endian hosts). The job's workers write the versions. Readers in any process of the
/// same user map the memory.
///
///   ledger = PublishedHeader TensorEntry{tensor_count} names    "weft-<job>-published-<name>"
///   values = the tensors of a version{kVersionCountMax}         "weft-<job>-values-<name>"
///
/// A place is one of the kVersionCountMax ranges of `values`. The names of the tensors follow each
/// other without separators. Readers map `values` read-only. They map the ledger writable, because
/// a reader sets its bit in the holders of a place.
///
/// Invariants:
/// 1. Worker 0 chooses the place of a version. It first stores 0 in the place's `version`, and then
///    reads all holders. If there are any, it restores `version` and chooses another place.
/// 2. A reader sets its bit first, and then reads `version`. If this isn't the version that
///    `newest` named, it clears the bit and begins again.
/// 3. From 1 and 2: a place is never written while a reader that has found its version holds it.
/// 4. Worker 0 makes `newest` name a version only when all workers have copied their parts of it.
///    The version in `newest` never decreases, even if the job continues from an earlier step.
/// 5. A reader locks its byte of the ledger's file as long as it lives (LifeLock). A process that
///    gets the lock of a reader's byte may clear all bits of this reader.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft {

inline constexpr std::uint64_t kPublishedMagic = 0x3173'7265'7674'6677;  // "wftvers1"
inline constexpr std::uint32_t kPublishedFormat = 2;
inline constexpr std::uint32_t kVersionCountMax = 8;
inline constexpr std::uint32_t kReaderCountMax = 256;
inline constexpr std::uint32_t kPublishingWorkersMax = 256;
inline constexpr std::uint32_t kPublishedTensorsMax = 1U << 16U;
inline constexpr std::size_t kPublishedNamesMax = std::size_t{16} << 20;
inline constexpr std::size_t kPublishedAlignment = 64;

/// The word `newest`: the newest version and its place. 0: no version has been published.
struct NewestVersion {
  std::uint64_t version = 0;
  std::uint32_t place = 0;

  static NewestVersion of(std::uint64_t word) {
    return {.version = (word >> 3U) - 1, .place = static_cast<std::uint32_t>(word & 7U)};
  }
  std::uint64_t word() const { return (version + 1) << 3U | place; }
};
static_assert(kVersionCountMax == 8);

struct alignas(64) PlaceRow {
  std::atomic<std::uint64_t> holders[kReaderCountMax / 64];  ///< a bit for each reader
  std::atomic<std::uint64_t> version;      ///< the version + 1; 0: the place isn't readable
  std::atomic<std::uint32_t> is_reserved;  ///< 1: the place has memory
  std::byte reserved[20];
};
static_assert(sizeof(PlaceRow) == 64);

struct PublishedHeader {
  std::uint64_t magic;  ///< written last
  std::uint32_t format;
  std::uint32_t tensor_count;
  std::uint64_t name_bytes;
  std::uint64_t version_bytes;  ///< the bytes that one version takes in `values`
  std::uint32_t worker_count;
  std::byte reserved[92];
  char control_root[512];  ///< the folder with the job's lock; "": unknown

  alignas(128) std::atomic<std::uint64_t> newest;
  /// Counts changes of `newest`; readers sleep on it.
  alignas(128) std::atomic<std::uint32_t> news;
  std::atomic<std::uint64_t> published;
  /// Counts versions that weren't published because no place or no memory was free.
  std::atomic<std::uint64_t> skipped;

  /// Each publication has a number, which grows even from generation to generation. Worker 0 first
  /// stores in `chosen` the publication for which it has chosen a place, and then stores in
  /// `decided` the last publication on which it has decided. If that is another one than `chosen`,
  /// the publication is skipped.
  alignas(128) std::atomic<std::uint64_t> decided;
  std::atomic<std::uint64_t> chosen;
  std::atomic<std::uint64_t> chosen_version;
  std::atomic<std::uint32_t> chosen_place;
  /// Counts changes of `decided` and `copied`; workers sleep on it.
  std::atomic<std::uint32_t> turns;
  /// copied[w]: the last publication for which worker w has copied its part.
  alignas(128) std::atomic<std::uint64_t> copied[kPublishingWorkersMax];
  /// The process that has a reader's number, or had it last; 0: no process has had the number.
  std::atomic<std::int32_t> reader_pids[kReaderCountMax];
  PlaceRow places[kVersionCountMax];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The place of a tensor in a version or row.
struct TensorEntry {
  std::uint64_t offset;
  std::int64_t dims[6];
  std::uint32_t name_bytes;
  std::uint8_t dtype;
  std::uint8_t rank;
  std::uint16_t reserved;
};
static_assert(sizeof(TensorEntry) == 64);

}  // namespace weft
