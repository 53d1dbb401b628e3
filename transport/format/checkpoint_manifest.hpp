#pragma once
/// Checkpoint manifest: which tensors a checkpoint has, and where their shards lie.
///
///   manifest file = envelope(Manifest)           (schema/checkpoint.fbs)

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/type.hpp>

#include "transport/format/envelope.hpp"

namespace weft {

inline constexpr Format kManifestFormat{"checkpoint manifest", "weftmnft", 1};
/// A tensor is stored in at most so many shards.
inline constexpr std::size_t kStoredShardCountMax = 4096;

struct StoredShard {
  Shape offsets{};
  Shape dims{};
  std::uint32_t file = 0;         ///< index into `files`
  std::uint64_t file_offset = 0;  ///< of the shard's frame: a multiple of kShardAlignment
  std::uint64_t frame_bytes = 0;
  std::uint64_t payload_xxh3 = 0;

  friend bool operator==(const StoredShard&, const StoredShard&) = default;
};

struct StoredTensor {
  std::string name{};
  TensorType type{};
  std::vector<StoredShard> shards{};

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

struct CheckpointManifest {
  std::uint64_t step = 0;
  std::vector<std::int64_t> mesh_shape{};
  std::vector<std::string> axis_names{};
  std::vector<std::string> files{};  ///< names in the checkpoint's folder
  std::vector<StoredTensor> tensors{};

  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

/// Throws invalid_argument for what decode_manifest would refuse.
std::vector<std::byte> encode_manifest(const CheckpointManifest& manifest);

/// Throws version, or corrupt unless names are distinct, files are plain names, and the shards of
/// each tensor have all of its elements, none of them twice. `bytes` is the whole file, 8-byte
/// aligned.
CheckpointManifest decode_manifest(std::span<const std::byte> bytes);

}  // namespace weft
