#include "transport/format/shard_frame.hpp"

#include <algorithm>
#include <cstring>

#include <weft_schema/shard_generated.h>

#include "transport/format/tensor_fields.hpp"

namespace weft {
namespace {

constexpr std::size_t payload_offset_after(std::size_t body_bytes) {
  return (kEnvelopePrefixBytes + body_bytes + kShardAlignment - 1) / kShardAlignment *
         kShardAlignment;
}

std::size_t payload_bytes(const ShardHeader& header) {
  return static_cast<std::size_t>(TensorType{header.type.dtype, header.dims}.bytes());
}

/// Builds a header. The header's size doesn't depend on the checksum.
flatbuffers::FlatBufferBuilder build_header(const ShardHeader& header, std::uint64_t checksum) {
  if (const auto fault = shard_fault(header.type, header.offsets, header.dims)) {
    fail(Errc::invalid_argument, "shard frame of '{}': {}", header.name, *fault);
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  const auto name = builder.CreateString(header.name);
  const auto offsets = write_dims(builder, header.offsets);
  const auto dims = write_dims(builder, header.dims);
  const auto coords = write_dims(builder, header.mesh_coords);
  const fb::TensorType type = write_type(header.type);
  fb::FinishTensorShardBuffer(
      builder, fb::CreateTensorShard(builder, name, &type, offsets, dims, coords, header.step,
                                     header.version, payload_bytes(header), checksum));
  return builder;
}

/// Writes all bytes before the payload.
void write_head(const flatbuffers::FlatBufferBuilder& builder, std::span<std::byte> head) {
  const auto body = body_of(builder);
  const auto padding = std::ranges::copy(body, head.begin() + kEnvelopePrefixBytes).out;
  std::fill(padding, head.end(), std::byte{0});
  seal_envelope(kShardFormat, head.first(kEnvelopePrefixBytes + body.size()));
}

ShardLayout layout_after(std::size_t body_bytes, const ShardHeader& header) {
  const std::size_t offset = payload_offset_after(body_bytes);
  const std::size_t bytes = payload_bytes(header);
  return {.payload_offset = offset, .payload_bytes = bytes, .frame_bytes = offset + bytes};
}

void require_aligned(const std::byte* start) {
  if (reinterpret_cast<std::uintptr_t>(start) % kShardAlignment != 0) {
    fail(Errc::invalid_argument, "shard frame: begins at {}, which isn't a multiple of {}",
         static_cast<const void*>(start), kShardAlignment);
  }
}

ShardHeader read_header(const fb::TensorShard& shard) {
  ShardHeader header{.name = shard.name()->str(), .step = shard.step(), .version = shard.version()};
  const std::string what = fmt::format("shard frame of '{}'", header.name);
  header.type = read_type(*shard.type(), what);
  header.offsets = read_dims(*shard.offsets(), header.type, what);
  header.dims = read_dims(*shard.dims(), header.type, what);
  if (const auto fault = shard_fault(header.type, header.offsets, header.dims)) {
    fail(Errc::corrupt, "{}: {}", what, *fault);
  }
  header.mesh_coords = read_numbers(*shard.mesh_coords(), what);
  const auto& coords = header.mesh_coords;
  if (coords.size() > static_cast<std::size_t>(kAtomCountMax) ||
      std::ranges::any_of(coords, [](std::int64_t coord) { return coord < 0; })) {
    fail(Errc::corrupt, "{}: {} mesh coordinates are too many, or one is below 0", what,
         coords.size());
  }
  if (shard.payload_bytes() != payload_bytes(header)) {
    fail(Errc::corrupt, "{}: the payload has {} bytes, but {} of its dtype needs {}", what,
         shard.payload_bytes(), header.dims.to_string(), payload_bytes(header));
  }
  return header;
}

/// Reads the head of a frame. Verifies the bytes of `head` that precede the payload, and that the
/// payload fits in `frame`. Both spans begin at the frame's start. `head` must not change during
/// the call.
ShardView read_head(std::span<const std::byte> head, std::span<const std::byte> frame) {
  ShardHead read = read_shard_head(head);
  const ShardLayout& layout = read.layout;
  if (layout.payload_bytes > frame.size() - layout.payload_offset) {
    fail(Errc::corrupt, "shard frame of '{}': {} bytes of {}", read.header.name, frame.size(),
         layout.frame_bytes);
  }
  return {.header = std::move(read.header),
          .payload = frame.subspan(layout.payload_offset, layout.payload_bytes),
          .frame_bytes = layout.frame_bytes,
          .payload_xxh3 = read.payload_xxh3};
}

}  // namespace

ShardLayout shard_layout(const ShardHeader& header) {
  return layout_after(build_header(header, 0).GetSize(), header);
}

std::vector<std::byte> shard_frame_head(const ShardHeader& header, std::uint64_t payload_xxh3) {
  const auto builder = build_header(header, payload_xxh3);
  std::vector<std::byte> head(payload_offset_after(builder.GetSize()));
  write_head(builder, head);
  return head;
}

void seal_shard_frame(const ShardHeader& header, std::span<std::byte> frame) {
  const ShardLayout layout = shard_layout(header);
  require_aligned(frame.data());
  if (frame.size() != layout.frame_bytes) {
    fail(Errc::invalid_argument, "shard frame of '{}': the buffer has {} bytes, but {} are needed",
         header.name, frame.size(), layout.frame_bytes);
  }
  write_head(build_header(header, xxh3(frame.subspan(layout.payload_offset))),
             frame.first(layout.payload_offset));
}

std::size_t write_shard_frame(const ShardHeader& header, std::span<const std::byte> payload,
                              std::span<std::byte> out) {
  const ShardLayout layout = shard_layout(header);
  if (payload.size() != layout.payload_bytes || out.size() < layout.frame_bytes) {
    fail(Errc::invalid_argument,
         "shard frame of '{}': the payload has {} bytes and the header says {}; the buffer has "
         "{} bytes and {} are needed",
         header.name, payload.size(), layout.payload_bytes, out.size(), layout.frame_bytes);
  }
  std::ranges::copy(payload, out.begin() + static_cast<std::ptrdiff_t>(layout.payload_offset));
  seal_shard_frame(header, out.first(layout.frame_bytes));
  return layout.frame_bytes;
}

ShardHead read_shard_head(std::span<const std::byte> bytes) {
  const auto body = open_envelope(kShardFormat, bytes);
  verify_body(body, fb::VerifyTensorShardBuffer, kShardFormat.name);
  const auto& shard = *fb::GetTensorShard(body.data());

  ShardHead head{.header = read_header(shard), .payload_xxh3 = shard.payload_xxh3()};
  head.layout = layout_after(body.size(), head.header);
  if (head.layout.payload_offset > bytes.size()) {
    fail(Errc::corrupt, "shard frame of '{}': {} bytes of {}", head.header.name, bytes.size(),
         head.layout.frame_bytes);
  }
  const std::size_t envelope_bytes = kEnvelopePrefixBytes + body.size();
  const auto padding = bytes.first(head.layout.payload_offset).subspan(envelope_bytes);
  if (std::ranges::any_of(padding, [](std::byte b) { return b != std::byte{0}; })) {
    fail(Errc::corrupt, "shard frame of '{}': its padding isn't zero", head.header.name);
  }
  return head;
}

ShardView read_shard_frame(std::span<const std::byte> bytes) {
  require_aligned(bytes.data());
  ShardView view = read_head(bytes, bytes);
  if (const std::uint64_t sum = xxh3(view.payload); sum != view.payload_xxh3) {
    fail(Errc::corrupt, "shard frame of '{}': the payload's checksum is {:016x}, not {:016x}",
         view.header.name, sum, view.payload_xxh3);
  }
  return view;
}

ShardView view_shard_frame(std::span<const std::byte> bytes) {
  require_aligned(bytes.data());
  const std::size_t head_bytes = payload_offset_after(said_body_bytes(bytes));
  const auto head = bytes.first(std::min(head_bytes, bytes.size()));
  return read_head(std::vector<std::byte>(head.begin(), head.end()), bytes);
}

}  // namespace weft
