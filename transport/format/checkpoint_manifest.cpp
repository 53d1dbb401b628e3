#include "transport/format/checkpoint_manifest.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>

#include <weft_schema/checkpoint_generated.h>

#include "transport/format/shard_frame.hpp"
#include "transport/format/tensor_fields.hpp"

namespace weft {
namespace {

using Fault = std::optional<std::string>;

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 62;

bool overlap(const StoredShard& a, const StoredShard& b) {
  for (int d = 0; d < a.dims.size(); ++d) {
    const std::int64_t begin = std::max(a.offsets[d], b.offsets[d]);
    const std::int64_t end = std::min(a.offsets[d] + a.dims[d], b.offsets[d] + b.dims[d]);
    if (begin >= end) return false;
  }
  return true;
}

/// Shards that lie in the tensor, don't overlap and have as many elements as it has, are all of it.
Fault cover_fault(const StoredTensor& tensor) {
  const auto& shards = tensor.shards;
  if (shards.size() > kStoredShardCountMax) {
    return fmt::format("{} shards; at most {} are possible", shards.size(), kStoredShardCountMax);
  }
  std::int64_t missing = tensor.type.num_elements();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (const Fault fault = shard_fault(tensor.type, shards[i].offsets, shards[i].dims)) {
      return fault;
    }
    missing -= shards[i].dims.num_elements();
    if (missing < 0) return "its shards have more elements than it has";
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(shards[i], shards[j])) return fmt::format("shards {} and {} overlap", j, i);
    }
  }
  if (missing > 0) return fmt::format("{} of its elements are in no shard", missing);
  return std::nullopt;
}

Fault place_fault(const StoredShard& shard, const CheckpointManifest& manifest,
                  const TensorType& type) {
  if (shard.file >= manifest.files.size()) {
    return fmt::format("a shard in file {} of {}", shard.file, manifest.files.size());
  }
  const auto payload_bytes = static_cast<std::uint64_t>(TensorType{type.dtype, shard.dims}.bytes());
  if (shard.file_offset % kShardAlignment != 0 || shard.frame_bytes < payload_bytes ||
      shard.file_offset > kFileBytesMax || shard.frame_bytes > kFileBytesMax) {
    return fmt::format("a shard's frame of {} bytes at {} for {} bytes of payload",
                       shard.frame_bytes, shard.file_offset, payload_bytes);
  }
  return std::nullopt;
}

Fault file_fault(std::string_view name) {
  if (!name.empty() && name != "." && name != ".." &&
      name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos) {
    return std::nullopt;
  }
  return fmt::format("\"{}\" isn't a plain file name", name);
}

Fault fault_of(const CheckpointManifest& manifest) {
  if (manifest.mesh_shape.size() != manifest.axis_names.size()) {
    return fmt::format("{} axes with {} names", manifest.mesh_shape.size(),
                       manifest.axis_names.size());
  }
  for (const std::string& name : manifest.files) {
    if (const Fault fault = file_fault(name)) return fault;
  }
  std::unordered_set<std::string_view> names;
  for (const StoredTensor& tensor : manifest.tensors) {
    if (!names.insert(tensor.name).second) return fmt::format("'{}' is there twice", tensor.name);
    Fault fault = cover_fault(tensor);
    for (const StoredShard& shard : tensor.shards) {
      if (!fault) fault = place_fault(shard, manifest, tensor.type);
    }
    if (fault) return fmt::format("'{}': {}", tensor.name, *fault);
  }
  return std::nullopt;
}

StoredTensor read_tensor(const fb::StoredTensor& stored) {
  StoredTensor tensor{.name = stored.name()->str()};
  const std::string what = fmt::format("{}: '{}'", kManifestFormat.name, tensor.name);
  tensor.type = read_type(*stored.type(), what);
  tensor.shards.reserve(stored.shards()->size());
  for (const fb::StoredShard* shard : *stored.shards()) {
    tensor.shards.push_back({.offsets = read_dims(*shard->offsets(), tensor.type, what),
                             .dims = read_dims(*shard->dims(), tensor.type, what),
                             .file = shard->file(),
                             .file_offset = shard->file_offset(),
                             .frame_bytes = shard->frame_bytes(),
                             .payload_xxh3 = shard->payload_xxh3()});
  }
  return tensor;
}

flatbuffers::Offset<fb::StoredTensor> write_tensor(flatbuffers::FlatBufferBuilder& builder,
                                                   const StoredTensor& tensor) {
  std::vector<flatbuffers::Offset<fb::StoredShard>> shards;
  shards.reserve(tensor.shards.size());
  for (const StoredShard& shard : tensor.shards) {
    const auto offsets = write_dims(builder, shard.offsets);
    const auto dims = write_dims(builder, shard.dims);
    shards.push_back(fb::CreateStoredShard(builder, offsets, dims, shard.file, shard.file_offset,
                                           shard.frame_bytes, shard.payload_xxh3));
  }
  const auto name = builder.CreateString(tensor.name);
  const auto shard_list = builder.CreateVector(shards);
  const fb::TensorType type = write_type(tensor.type);
  return fb::CreateStoredTensor(builder, name, &type, shard_list);
}

}  // namespace

std::vector<std::byte> encode_manifest(const CheckpointManifest& manifest) {
  if (const Fault fault = fault_of(manifest)) {
    fail(Errc::invalid_argument, "{}: {}", kManifestFormat.name, *fault);
  }
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::StoredTensor>> tensors;
  tensors.reserve(manifest.tensors.size());
  for (const StoredTensor& tensor : manifest.tensors) {
    tensors.push_back(write_tensor(builder, tensor));
  }
  const auto mesh_shape = write_dims(builder, manifest.mesh_shape);
  const auto axis_names = builder.CreateVectorOfStrings(manifest.axis_names);
  const auto files = builder.CreateVectorOfStrings(manifest.files);
  const auto tensor_list = builder.CreateVector(tensors);
  fb::FinishManifestBuffer(builder, fb::CreateManifest(builder, manifest.step, mesh_shape,
                                                       axis_names, files, tensor_list));
  return make_envelope(kManifestFormat, body_of(builder));
}

CheckpointManifest decode_manifest(std::span<const std::byte> bytes) {
  const auto body = open_file(kManifestFormat, bytes);
  verify_body(body, fb::VerifyManifestBuffer, kManifestFormat.name);
  const fb::Manifest& stored = *fb::GetManifest(body.data());

  CheckpointManifest manifest{
      .step = stored.step(),
      .mesh_shape = read_numbers(*stored.mesh_shape(), kManifestFormat.name),
      .axis_names = read_strings(*stored.axis_names()),
      .files = read_strings(*stored.files())};
  manifest.tensors.reserve(stored.tensors()->size());
  for (const fb::StoredTensor* tensor : *stored.tensors()) {
    manifest.tensors.push_back(read_tensor(*tensor));
  }
  if (const Fault fault = fault_of(manifest)) {
    fail(Errc::corrupt, "{}: {}", kManifestFormat.name, *fault);
  }
  return manifest;
}

}  // namespace weft
