#pragma once
/// Reads boxes of a checkpoint's tensors, whatever shards they are stored in, straight to their
/// places.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/files/part_files.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/storage/box_runs.hpp"

namespace weft {

/// A box to be read. Its elements of the tensor are written; others of its room stay as they are.
struct WantedBox {
  std::size_t tensor = 0;  ///< index into the manifest's tensors
  PlacedBox placed{};
  std::byte* memory = nullptr;  ///< row-major, of `placed.room`, elements of the tensor's dtype
};

struct ReadOptions {
  int threads = 4;
  bool verify = true;  ///< false for files without checksums
};

/// Bytes that were read from files, and of them those that were wanted.
struct ReadBytes {
  std::uint64_t read = 0;
  std::uint64_t wanted = 0;
};

/// Reads only the chunks (kStoredChunkBytes) that have wanted elements, each of them once, and
/// verifies each. Throws corrupt, naming tensor, file and offset, for a checksum that differs or a
/// file that is too short; not_found for a file that is missing; io. Of the memory of a box that
/// can't be read nothing is known.
ReadBytes read_boxes(const std::string& checkpoint, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options = {});

ReadBytes read_boxes(const PartFiles& files, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options = {});

/// Throws not_found or corrupt, naming the file, if one is missing or shorter than the manifest
/// says. Reads none of them.
void require_files(const std::string& checkpoint, const CheckpointManifest& manifest);

/// Reads everything; returns what is wrong, one sentence for each fault, empty if nothing is. Finds
/// any changed byte of the files that the manifest names.
std::vector<std::string> verify_checkpoint(const std::string& checkpoint,
                                           const CheckpointManifest& manifest,
                                           const ReadOptions& options = {});

}  // namespace weft
