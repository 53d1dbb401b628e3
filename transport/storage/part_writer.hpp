#pragma once
/// PartWriter: writes one worker's part of a checkpoint: a file of shard frames.
///
///   part file = (zeros frame)*          frame: see transport/format/shard_frame.hpp
///
/// All frames begin at multiples of 64; payloads of 64 KiB or more begin at multiples of 4096.

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/files/file_system.hpp"
#include "data/files/work_crew.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/format/shard_frame.hpp"
#include "transport/storage/box_runs.hpp"

namespace weft {

/// A shard to be stored. Its elements must not change while write_part() runs.
struct SourceShard {
  ShardHeader header{};  ///< offsets and dims in the global shape, without padding
  const std::byte* elements = nullptr;
  Shape room{};  ///< room of the memory at `elements`; see PlacedBox
};

struct PartOptions {
  int threads = 4;             ///< number of threads that copy, hash and write
  std::uint32_t file = 0;      ///< number of the file in the manifest
  Urgency* urgency = nullptr;  ///< null: the write is always urgent
};

/// Creates `path`, writes the shards, and returns each shard's place for the manifest. When it
/// returns, the data is on disk. Checks `stop` before each MiB, and throws cancelled if `stop` is
/// set. Also throws the errors of the file system. After an exception, the incomplete file remains.
std::vector<StoredShard> write_part(FileSystem& files, const std::string& path,
                                    std::span<const SourceShard> shards, const PartOptions& options,
                                    const std::atomic<bool>& stop);

}  // namespace weft
