#pragma once
/// Reads boxes of a checkpoint's tensors directly to their places, independent of the shards in
/// which the tensors are stored.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/files/part_files.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/storage/box_runs.hpp"

namespace weft {

/// A box to be read. Its elements of the tensor are written; other elements of its room stay
/// unchanged.
struct WantedBox {
  std::size_t tensor = 0;  ///< index into the manifest's tensors
  PlacedBox placed{};
  std::byte* memory = nullptr;  ///< row-major, with the room `placed.room`; elements have the
                                ///< tensor's dtype
};

struct ReadOptions {
  int threads = 4;
  bool verify = true;  ///< false for files without checksums
};

/// The bytes read from files, and how many of them were wanted.
struct ReadBytes {
  std::uint64_t read = 0;
  std::uint64_t wanted = 0;
};

/// Reads only the chunks (kStoredChunkBytes) that have wanted elements, each of them once, and
/// verifies each. Throws corrupt, naming tensor, file and offset, if a checksum differs or a file
/// is too short. Throws not_found if a file is missing. Throws io. If a box can't be read, the
/// content of its memory is unspecified.
ReadBytes read_boxes(const std::string& checkpoint, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options = {});

ReadBytes read_boxes(const PartFiles& files, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options = {});

/// Throws not_found or corrupt, naming the file, if a file is missing or shorter than the manifest
/// says. It reads no file.
void require_files(const std::string& checkpoint, const CheckpointManifest& manifest);

/// Reads everything. Returns one sentence for each fault; empty if there is none. It finds any
/// changed byte of the files that the manifest names.
std::vector<std::string> verify_checkpoint(const std::string& checkpoint,
                                           const CheckpointManifest& manifest,
                                           const ReadOptions& options = {});

}  // namespace weft
