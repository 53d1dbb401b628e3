#pragma once
/// CheckpointReader: reads boxes of a checkpoint's tensors directly to their places in memory. The
/// boxes needn't be the shards in which the tensors are stored.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/files/part_files.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/storage/box_runs.hpp"

namespace weft {

/// A box of a tensor to be read into `memory`. Elements in the box's room but not in the box stay
/// unchanged.
struct WantedBox {
  std::size_t tensor = 0;  ///< index in the manifest's `tensors`
  PlacedBox placed{};
  std::byte* memory = nullptr;  ///< row-major, with the room `placed.room`; elements have the
                                ///< tensor's dtype
};

struct ReadOptions {
  int threads = 4;
  bool verify = true;  ///< whether checksums are verified; false for files without checksums
};

/// The bytes that were read from files, and the wanted ones among them.
struct ReadBytes {
  std::uint64_t read = 0;
  std::uint64_t wanted = 0;
};

/// Reads the chunks (kStoredChunkBytes) that have wanted elements, each chunk once, and verifies
/// them. Throws corrupt, with tensor, file and offset, if a checksum differs or a file is too
/// short; not_found if a file is missing; and io. The content of boxes that can't be read is
/// unspecified.
ReadBytes read_boxes(const std::string& checkpoint, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options = {});

ReadBytes read_boxes(const PartFiles& files, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options = {});

/// Throws not_found or corrupt, with the file's name, if a file is missing or shorter than the
/// manifest says. Checks only the sizes of files.
void require_files(const std::string& checkpoint, const CheckpointManifest& manifest);

/// Reads everything, and returns a sentence for each fault. Finds any changed byte in the files
/// that the manifest names.
std::vector<std::string> verify_checkpoint(const std::string& checkpoint,
                                           const CheckpointManifest& manifest,
                                           const ReadOptions& options = {});

}  // namespace weft
