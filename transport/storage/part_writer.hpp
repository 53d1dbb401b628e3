#pragma once
/// Writes one worker's part of a checkpoint: a file of shard frames.
///
///   part file = (zeros frame)*          frame: see transport/format/shard_frame.hpp
///
/// A frame begins at a multiple of 64. A payload of 64 KiB or more begins at a multiple of 4096.

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

/// A shard to be stored. Its elements must not change while they are written.
struct SourceShard {
  ShardHeader header{};  ///< its box is a box of the global shape, without padding
  const std::byte* elements = nullptr;
  Shape room{};  ///< room of the memory at `elements`: see PlacedBox
};

struct PartOptions {
  int threads = 4;             ///< threads that copy, hash and write
  std::uint32_t file = 0;      ///< number of the file in the manifest
  Urgency* urgency = nullptr;  ///< null: urgent
};

/// Creates `path`, writes the shards and makes the file's bytes durable. Returns each shard's
/// place, for the manifest. Checks `stop` before each MiB, and throws cancelled if it is set. Also
/// throws the errors of the file system. After an exception the incomplete file remains.
std::vector<StoredShard> write_part(FileSystem& files, const std::string& path,
                                    std::span<const SourceShard> shards, const PartOptions& options,
                                    const std::atomic<bool>& stop);

}  // namespace weft
