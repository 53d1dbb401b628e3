#include "transport/format/checkpoint_manifest.hpp"

#include <algorithm>
#include <array>
#include <numeric>
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

/// Returns the dim along which the shards have the largest number of different offsets.
int most_cut_dim(const StoredTensor& tensor) {
  int best = 0;
  std::size_t best_cuts = 0;
  for (int d = 0; d < tensor.type.shape.size(); ++d) {
    std::unordered_set<std::int64_t> begins;
    for (const StoredShard& shard : tensor.shards) begins.insert(shard.offsets[d]);
    if (begins.size() > best_cuts) {
      best = d;
      best_cuts = begins.size();
    }
  }
  return best;
}

/// Returns an error if two shards overlap. Sorts the shards along one dim, and compares each shard
/// with the later ones that begin before its end.
Fault overlap_fault(const StoredTensor& tensor) {
  const auto& shards = tensor.shards;
  const int dim = most_cut_dim(tensor);
  const bool is_scalar = tensor.type.shape.size() == 0;
  std::vector<std::size_t> order(shards.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!is_scalar) {
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return shards[i].offsets[dim]; });
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const StoredShard& shard = shards[order[i]];
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const StoredShard& later = shards[order[j]];
      if (!is_scalar && later.offsets[dim] >= shard.offsets[dim] + shard.dims[dim]) break;
      if (overlap(shard, later)) {
        return fmt::format("shards {} and {} overlap", std::min(order[i], order[j]),
                           std::max(order[i], order[j]));
      }
    }
  }
  return std::nullopt;
}

/// Returns an error unless the shards cover the tensor. They cover it if they are within the
/// tensor, don't overlap, and together have as many elements as the tensor.
Fault cover_fault(const StoredTensor& tensor, bool is_whole) {
  const auto& shards = tensor.shards;
  if (shards.size() > kStoredShardCountMax) {
    return fmt::format("{} shards; at most {} are possible", shards.size(), kStoredShardCountMax);
  }
  std::int64_t missing = tensor.type.num_elements();
  for (const StoredShard& shard : shards) {
    if (const Fault fault = shard_fault(tensor.type, shard.offsets, shard.dims)) return fault;
    missing -= shard.dims.num_elements();
    if (missing < 0) return "its shards have more elements than it has";
  }
  if (const Fault fault = overlap_fault(tensor)) return fault;
  if (missing > 0 && is_whole) return fmt::format("{} of its elements are in no shard", missing);
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
  const std::uint64_t chunks = (payload_bytes + kStoredChunkBytes - 1) / kStoredChunkBytes;
  if (!shard.chunk_xxh3.empty() && shard.chunk_xxh3.size() != chunks) {
    return fmt::format("{} checksums of chunks for {} bytes of payload", shard.chunk_xxh3.size(),
                       payload_bytes);
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

Fault mesh_fault(const CheckpointManifest& manifest) {
  if (manifest.mesh_shape.size() != manifest.axis_names.size()) {
    return fmt::format("{} axes with {} names", manifest.mesh_shape.size(),
                       manifest.axis_names.size());
  }
  try {
    (void)manifest.mesh();
  } catch (const Error& e) {
    return fmt::format("its mesh: {}", e.what());
  }
  return std::nullopt;
}

bool is_whole(const Format& format) { return format.magic == kManifestFormat.magic; }

Fault fault_of(const CheckpointManifest& manifest, bool is_whole) {
  for (const std::string& name : manifest.files) {
    if (const Fault fault = file_fault(name)) return fault;
  }
  if (manifest.user_json.size() > kUserJsonBytesMax) {
    return fmt::format("{} bytes of data of the program; at most {} are possible",
                       manifest.user_json.size(), kUserJsonBytesMax);
  }
  if (manifest.tensors.size() > kStoredTensorCountMax) {
    return fmt::format("{} tensors; at most {} are possible", manifest.tensors.size(),
                       kStoredTensorCountMax);
  }
  if (Fault fault = commands_fault(manifest.commands)) return fault;
  const bool has_mesh = !manifest.mesh_shape.empty();
  if (const Fault fault = mesh_fault(manifest)) return fault;
  std::unordered_set<std::string_view> names;
  for (const StoredTensor& tensor : manifest.tensors) {
    if (!names.insert(tensor.name).second) return fmt::format("'{}' is given twice", tensor.name);
    Fault fault = cover_fault(tensor, is_whole);
    if (tensor.sharding && !has_mesh) fault = "a sharding without a mesh";
    for (const StoredShard& shard : tensor.shards) {
      if (!fault) fault = place_fault(shard, manifest, tensor.type);
    }
    if (fault) return fmt::format("'{}': {}", tensor.name, *fault);
  }
  return std::nullopt;
}

/// Limits how many bytes of tables are read from a body. Tables may share vectors, so without a
/// limit a small body could make a large manifest.
class Budget {
 public:
  explicit Budget(std::size_t body_bytes) : left_(body_bytes) {}
  void take(std::size_t bytes) {
    if (bytes > left_) fail(Errc::corrupt, "{}: its tables share bytes", kManifestFormat.name);
    left_ -= bytes;
  }

 private:
  std::size_t left_;
};

void take_loaders(const LoaderTables* loaders, Budget& budget) {
  if (loaders == nullptr) return;
  budget.take(loaders->size() * sizeof(flatbuffers::uoffset_t));
  for (const fb::StoredLoader* loader : *loaders) {
    budget.take(loader->dataset()->size());
    if (loader->site() != nullptr) budget.take(loader->site()->size());
  }
}

void take_commands(const CommandTables* commands, Budget& budget) {
  if (commands == nullptr) return;
  budget.take(commands->size() * sizeof(flatbuffers::uoffset_t));
  for (const fb::StoredCommand* command : *commands) {
    budget.take(command->name()->size() + command->payload()->size());
  }
}

StoredTensor read_tensor(const fb::StoredTensor& stored, const std::optional<Mesh>& mesh,
                         Budget& budget) {
  budget.take(stored.name()->size() + stored.shards()->size() * sizeof(flatbuffers::uoffset_t));
  StoredTensor tensor{.name = stored.name()->str()};
  const std::string what = fmt::format("{}: '{}'", kManifestFormat.name, tensor.name);
  tensor.type = read_type(*stored.type(), what);
  if (stored.kind() > fb::StateKind::buffer) {
    fail(Errc::corrupt, "{}: kind {}", what, static_cast<int>(stored.kind()));
  }
  tensor.kind = static_cast<StateKind>(stored.kind());
  if (stored.sharding() != nullptr) {
    if (!mesh) fail(Errc::corrupt, "{}: a sharding without a mesh", what);
    tensor.sharding = read_sharding(*stored.sharding(), *mesh, what);
  }
  tensor.shards.reserve(stored.shards()->size());
  for (const fb::StoredShard* shard : *stored.shards()) {
    if (shard->chunk_xxh3() != nullptr) {
      budget.take(shard->chunk_xxh3()->size() * sizeof(std::uint64_t));
    }
    tensor.shards.push_back({.offsets = read_dims(*shard->offsets(), tensor.type, what),
                             .dims = read_dims(*shard->dims(), tensor.type, what),
                             .file = shard->file(),
                             .file_offset = shard->file_offset(),
                             .frame_bytes = shard->frame_bytes(),
                             .payload_xxh3 = shard->payload_xxh3(),
                             .chunk_xxh3 = shard->chunk_xxh3() == nullptr
                                               ? std::vector<std::uint64_t>()
                                               : read_numbers(*shard->chunk_xxh3(), what)});
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
    flatbuffers::Offset<flatbuffers::Vector<std::uint64_t>> chunks;
    if (!shard.chunk_xxh3.empty()) chunks = builder.CreateVector(shard.chunk_xxh3);
    shards.push_back(fb::CreateStoredShard(builder, offsets, dims, shard.file, shard.file_offset,
                                           shard.frame_bytes, shard.payload_xxh3, chunks));
  }
  const auto name = builder.CreateString(tensor.name);
  const auto shard_list = builder.CreateVector(shards);
  const fb::TensorType type = write_type(tensor.type);
  fb::Sharding sharding;
  if (tensor.sharding) sharding = write_sharding(*tensor.sharding);
  return fb::CreateStoredTensor(builder, name, &type, shard_list,
                                static_cast<fb::StateKind>(tensor.kind),
                                tensor.sharding ? &sharding : nullptr);
}

}  // namespace

std::optional<Mesh> CheckpointManifest::mesh() const {
  if (mesh_shape.empty()) return std::nullopt;
  return Mesh(mesh_shape, axis_names, device_ids, dcn_shape);
}

std::vector<std::byte> encode_manifest(const CheckpointManifest& manifest, const Format& format) {
  if (const Fault fault = fault_of(manifest, is_whole(format))) {
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
  flatbuffers::Offset<flatbuffers::Vector<std::int32_t>> device_ids;
  if (!manifest.device_ids.empty()) device_ids = builder.CreateVector(manifest.device_ids);
  flatbuffers::Offset<flatbuffers::String> user_json;
  if (!manifest.user_json.empty()) user_json = builder.CreateString(manifest.user_json);
  const auto loaders = write_loaders(builder, manifest.loaders);
  flatbuffers::Offset<flatbuffers::String> rescued_from;
  if (!manifest.rescued_from.empty()) rescued_from = builder.CreateString(manifest.rescued_from);
  const auto commands = write_commands(builder, manifest.commands);
  flatbuffers::Offset<flatbuffers::Vector<std::int64_t>> dcn_shape;
  if (!manifest.dcn_shape.empty()) dcn_shape = write_dims(builder, manifest.dcn_shape);
  flatbuffers::Offset<flatbuffers::String> save_id;
  if (!manifest.save_id.empty()) save_id = builder.CreateString(manifest.save_id);
  fb::FinishManifestBuffer(
      builder, fb::CreateManifest(builder, manifest.step, mesh_shape, axis_names, files,
                                  tensor_list, device_ids, manifest.seed, user_json, loaders,
                                  manifest.partial, rescued_from, commands, dcn_shape, save_id));
  if (builder.GetSize() > kManifestBytesMax - kEnvelopePrefixBytes) {
    fail(Errc::invalid_argument,
         "{}: {} tensors in {} files take {} bytes: expected at most {}; store fewer tensors, or "
         "larger shards",
         kManifestFormat.name, manifest.tensors.size(), manifest.files.size(), builder.GetSize(),
         kManifestBytesMax);
  }
  return make_envelope(format, body_of(builder));
}

CheckpointManifest decode_manifest(std::span<const std::byte> bytes, const Format& format) {
  const auto body = open_file(format, bytes);
  verify_body(body, fb::VerifyManifestBuffer, kManifestFormat.name);
  const fb::Manifest& stored = *fb::GetManifest(body.data());

  CheckpointManifest manifest{
      .step = stored.step(),
      .mesh_shape = read_numbers(*stored.mesh_shape(), kManifestFormat.name),
      .axis_names = read_strings(*stored.axis_names()),
      .files = read_strings(*stored.files()),
      .seed = stored.seed(),
      .partial = stored.partial()};
  if (stored.device_ids() != nullptr) {
    manifest.device_ids = read_numbers(*stored.device_ids(), kManifestFormat.name);
  }
  manifest.dcn_shape = read_dcn_shape(stored.dcn_shape(), kManifestFormat.name);
  if (stored.user_json() != nullptr) manifest.user_json = stored.user_json()->str();
  if (stored.rescued_from() != nullptr) manifest.rescued_from = stored.rescued_from()->str();
  if (stored.save_id() != nullptr) manifest.save_id = stored.save_id()->str();
  if (const Fault fault = mesh_fault(manifest)) {
    fail(Errc::corrupt, "{}: {}", kManifestFormat.name, *fault);
  }
  const std::optional<Mesh> mesh = manifest.mesh();
  Budget budget(body.size());
  budget.take(stored.tensors()->size() * sizeof(flatbuffers::uoffset_t));
  manifest.tensors.reserve(stored.tensors()->size());
  for (const fb::StoredTensor* tensor : *stored.tensors()) {
    manifest.tensors.push_back(read_tensor(*tensor, mesh, budget));
  }
  take_loaders(stored.loaders(), budget);
  manifest.loaders = read_loaders(stored.loaders());
  take_commands(stored.commands(), budget);
  manifest.commands = read_commands(stored.commands());
  if (const Fault fault = fault_of(manifest, is_whole(format))) {
    fail(Errc::corrupt, "{}: {}", kManifestFormat.name, *fault);
  }
  return manifest;
}

}  // namespace weft
