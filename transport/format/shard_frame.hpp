#pragma once
/// Shard frame: a part of a tensor with its position in the whole. It is framed as Arrow IPC frames
/// a record batch: a FlatBuffers header, followed by the payload. The frame is the same in an
/// arena, a slot and a file.
///
///   shard frame = envelope(TensorShard) padding payload           (schema/shard.fbs)
///
/// A frame and its payload both begin at a multiple of 64. The padding between them is zeros.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor/type.hpp>

#include "data/files/envelope.hpp"

namespace weft {

inline constexpr Format kShardFormat{"shard frame", "weftshrd", 1};
inline constexpr std::size_t kShardAlignment = 64;

struct ShardHeader {
  std::string name{};
  TensorType type{};                        ///< the whole tensor's
  Shape offsets{};                          ///< the shard's, within the tensor
  Shape dims{};                             ///< the shard's
  std::vector<std::int64_t> mesh_coords{};  ///< coordinates of the chip that holds the shard
  std::uint64_t step = 0;
  std::uint64_t version = 0;

  friend bool operator==(const ShardHeader&, const ShardHeader&) = default;
};

/// Offsets in a frame, in bytes from its start.
struct ShardLayout {
  std::size_t payload_offset = 0;
  std::size_t payload_bytes = 0;
  std::size_t frame_bytes = 0;
};

/// Throws invalid_argument if the shard isn't a part of the tensor.
ShardLayout shard_layout(const ShardHeader& header);

/// Returns the bytes of a frame before its payload: shard_layout(header).payload_offset bytes.
/// `payload_xxh3` is the payload's checksum.
std::vector<std::byte> shard_frame_head(const ShardHeader& header, std::uint64_t payload_xxh3);
/// Completes a frame whose payload is already in place, by writing all bytes before it. `frame`
/// must have shard_layout(header).frame_bytes and begin at a multiple of 64 (else
/// invalid_argument).
void seal_shard_frame(const ShardHeader& header, std::span<std::byte> frame);
/// Copies the payload to its place and completes the frame. Returns the frame's size. Throws
/// invalid_argument for a payload of another size, or if `out` is too small.
std::size_t write_shard_frame(const ShardHeader& header, std::span<const std::byte> payload,
                              std::span<std::byte> out);

struct ShardView {
  ShardHeader header;
  std::span<const std::byte> payload{};  ///< within the bytes that were read
  std::size_t frame_bytes = 0;
  std::uint64_t payload_xxh3 = 0;
};

/// The contents of the bytes before a frame's payload.
struct ShardHead {
  ShardHeader header{};
  ShardLayout layout{};
  std::uint64_t payload_xxh3 = 0;
};
/// Reads the head at the beginning of `bytes`, which are 8-byte aligned. Throws corrupt or version.
ShardHead read_shard_head(std::span<const std::byte> bytes);

/// Reads the frame at the beginning of `bytes`; more bytes may follow. All of the frame, including
/// the payload, is checked before use. Throws corrupt or version. Throws invalid_argument if
/// `bytes` doesn't begin at a multiple of 64. The bytes must not change meanwhile.
ShardView read_shard_frame(std::span<const std::byte> bytes);
/// Reads a frame in memory that its writer may still access (a channel's slot). The bytes before
/// the payload are copied, and the copy is verified. The payload's place is checked, but not its
/// checksum.
ShardView view_shard_frame(std::span<const std::byte> bytes);

}  // namespace weft
