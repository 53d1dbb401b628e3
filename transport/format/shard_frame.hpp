#pragma once
/// ShardFrame: the bytes of a shard, which is a part of a tensor, and its position in the tensor. A
/// FlatBuffers header is followed by the payload, as in Arrow IPC. The frame has the same bytes in
/// an arena, a slot and a file.
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
  TensorType type{};                        ///< type of the complete tensor
  Shape offsets{};                          ///< offsets of the shard within the tensor
  Shape dims{};                             ///< dims of the shard
  std::vector<std::int64_t> mesh_coords{};  ///< coordinates of the chip that holds the shard
  std::uint64_t step = 0;
  std::uint64_t version = 0;

  friend bool operator==(const ShardHeader&, const ShardHeader&) = default;
};

/// Offsets and sizes in bytes. Offsets are from the beginning of the frame.
struct ShardLayout {
  std::size_t payload_offset = 0;
  std::size_t payload_bytes = 0;
  std::size_t frame_bytes = 0;
};

/// Returns the layout of a shard's frame. Throws invalid_argument if the shard isn't within the
/// tensor.
ShardLayout shard_layout(const ShardHeader& header);

/// Returns the bytes of a frame before its payload: shard_layout(header).payload_offset bytes.
/// `payload_xxh3` is the payload's checksum.
std::vector<std::byte> shard_frame_head(const ShardHeader& header, std::uint64_t payload_xxh3);
/// Writes all bytes before the payload, and so completes a frame whose payload is already in place.
/// Throws invalid_argument unless `frame` has shard_layout(header).frame_bytes bytes and begins at
/// a multiple of 64.
void seal_shard_frame(const ShardHeader& header, std::span<std::byte> frame);
/// Copies the payload to its place in `out` and completes the frame. Returns the frame's size.
/// Throws invalid_argument if the payload hasn't the shard's size, or if `out` is too small.
std::size_t write_shard_frame(const ShardHeader& header, std::span<const std::byte> payload,
                              std::span<std::byte> out);

struct ShardView {
  ShardHeader header;
  std::span<const std::byte> payload{};  ///< part of the bytes that were read
  std::size_t frame_bytes = 0;
  std::uint64_t payload_xxh3 = 0;
};

/// The contents of a frame before its payload.
struct ShardHead {
  ShardHeader header{};
  ShardLayout layout{};
  std::uint64_t payload_xxh3 = 0;
};
/// Reads the head at the beginning of `bytes`, which are 8-byte aligned. Throws corrupt or version.
ShardHead read_shard_head(std::span<const std::byte> bytes);

/// Reads the frame at the beginning of `bytes`; more bytes may follow the frame. Checks all of the
/// frame, including the payload, so the bytes must not change during the call. Throws corrupt or
/// version, and invalid_argument if `bytes` doesn't begin at a multiple of 64.
ShardView read_shard_frame(std::span<const std::byte> bytes);
/// Reads a frame in memory that the frame's writer may still access (a channel's slot). Copies the
/// bytes before the payload, and verifies the copy. The payload must be within `bytes`; its
/// checksum isn't verified.
ShardView view_shard_frame(std::span<const std::byte> bytes);

}  // namespace weft
