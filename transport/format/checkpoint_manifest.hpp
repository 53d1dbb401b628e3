#pragma once
/// CheckpointManifest: lists the tensors of a checkpoint and the places of their shards.
///
///   manifest file = envelope(Manifest)           (schema/checkpoint.fbs)
///   table file    = envelope(Manifest)           all tensors, but only the shards of one part

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/mesh.hpp>
#include <weft/tensor/type.hpp>

#include "data/files/envelope.hpp"
#include "spmd/mesh/sharding.hpp"
#include "transport/format/state_kind.hpp"
#include "transport/format/stored_command.hpp"
#include "transport/format/stored_loader.hpp"

namespace weft {

inline constexpr Format kManifestFormat{"checkpoint manifest", "weftmnft", 1};
/// The format of a part's table, a file that exists until the checkpoint is complete.
inline constexpr Format kPartTableFormat{"checkpoint part table", "weftpart", 1};
/// The maximum number of shards of a tensor.
inline constexpr std::size_t kStoredShardCountMax = 4096;
/// The maximum size of a manifest's file in bytes.
inline constexpr std::size_t kManifestBytesMax = std::size_t{256} << 20;
/// The maximum number of tensors of a checkpoint.
inline constexpr std::size_t kStoredTensorCountMax = std::size_t{1} << 20;
/// The size in bytes of the chunks of a shard's payload. Each chunk has a checksum. The last chunk
/// may be shorter.
inline constexpr std::size_t kStoredChunkBytes = std::size_t{1} << 20;
/// The maximum size of CheckpointManifest::user_json in bytes.
inline constexpr std::size_t kUserJsonBytesMax = std::size_t{1} << 20;

struct StoredShard {
  Shape offsets{};
  Shape dims{};
  std::uint32_t file = 0;         ///< index in CheckpointManifest::files
  std::uint64_t file_offset = 0;  ///< offset of the shard's frame; a multiple of kShardAlignment
  std::uint64_t frame_bytes = 0;
  std::uint64_t payload_xxh3 = 0;
  std::vector<std::uint64_t> chunk_xxh3{};  ///< the checksum of each chunk of the payload

  friend bool operator==(const StoredShard&, const StoredShard&) = default;
};

struct StoredTensor {
  std::string name{};
  TensorType type{};
  std::vector<StoredShard> shards{};
  StateKind kind = StateKind::param;
  std::optional<Sharding> sharding{};  ///< sharding on the manifest's mesh; std::nullopt if unknown

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

struct CheckpointManifest {
  std::uint64_t step = 0;
  std::vector<std::int64_t> mesh_shape{};
  std::vector<std::string> axis_names{};
  std::vector<std::string> files{};  ///< names in the checkpoint's folder
  std::vector<StoredTensor> tensors{};
  std::vector<int> device_ids{};  ///< ids of the mesh's chips; empty: 0, 1, 2, ...
  std::uint64_t seed = 0;
  std::string user_json{};
  std::vector<StoredLoader> loaders{};  ///< in the order in which the loop made the loaders
  /// If true, the checkpoint may lack some state of the loop that continues from it. The loop then
  /// initializes the missing state itself.
  bool partial = false;
  /// The run folder of the dead job from whose memory the checkpoint was saved; "" for other
  /// checkpoints.
  std::string rescued_from{};
  /// All commands of the job, in order. The commands that its loops had read come first.
  std::vector<StoredCommand> commands{};
  std::vector<std::int64_t> dcn_shape{};  ///< hosts per axis of the mesh; empty: one host
  /// An id that is the same in all copies of the checkpoint, if each host of the job has a copy
  /// because the hosts share no folder; otherwise "".
  std::string save_id{};

  /// Returns the mesh; std::nullopt if the manifest has no mesh.
  std::optional<Mesh> mesh() const;

  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

/// Encodes a manifest. Throws invalid_argument for a manifest that decode_manifest() would refuse.
/// With kPartTableFormat, the shards needn't cover their tensors.
std::vector<std::byte> encode_manifest(const CheckpointManifest& manifest,
                                       const Format& format = kManifestFormat);

/// Decodes a manifest. `bytes` is the complete file, 8-byte aligned. Throws version. Throws corrupt
/// if names aren't distinct, if files aren't plain names, or if the shards of a tensor don't have
/// each of its elements exactly once.
CheckpointManifest decode_manifest(std::span<const std::byte> bytes,
                                   const Format& format = kManifestFormat);

}  // namespace weft
