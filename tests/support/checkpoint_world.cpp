#include "tests/support/checkpoint_world.hpp"

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include <weft/sharding/partition_spec.hpp>
#include <weft/tensor/error.hpp>

#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/part_table.hpp"
#include "transport/storage/part_writer.hpp"

namespace weft::testing {
namespace {

std::int64_t up_to(Random& random, std::int64_t max) {
  return std::uniform_int_distribution<std::int64_t>(0, max)(random);
}

/// Returns memory for a position's shard, filled with 0xab, and sets `placed` to the shard's box.
std::vector<std::byte> empty_shard(const TensorType& type, const Sharding& sharding,
                                   const Mesh& mesh, PlacedBox& placed, int position) {
  placed = shard_box(type.shape, sharding, mesh, position);
  const auto bytes = static_cast<std::size_t>(TensorType{type.dtype, placed.room}.bytes());
  return std::vector<std::byte>(bytes, std::byte{0xab});
}

}  // namespace

Tree random_tree(Random& random, std::int64_t elements_max) {
  Tree tree;
  const std::int64_t tensors = 1 + up_to(random, 7);
  for (std::int64_t t = 0; t < tensors; ++t) {
    TreeTensor tensor{.name = fmt::format("layer{}.weight", t)};
    tensor.type.dtype = static_cast<DType>(up_to(random, 6));
    std::vector<std::int64_t> dims;
    std::int64_t left = elements_max;
    for (std::int64_t d = up_to(random, 4); d > 0; --d) {
      const std::int64_t dim =
          up_to(random, 19) == 0 ? 0 : 1 + up_to(random, std::min<std::int64_t>(left, 40) - 1);
      dims.push_back(dim);
      left = std::max<std::int64_t>(left / std::max<std::int64_t>(dim, 1), 1);
    }
    tensor.type.shape = Shape(dims);
    tensor.elements.resize(static_cast<std::size_t>(tensor.type.bytes()));
    const unsigned mask = tensor.type.dtype == DType::pred ? 1 : 0xff;
    for (std::byte& b : tensor.elements) b = static_cast<std::byte>(random() & mask);
    tree.push_back(std::move(tensor));
  }
  return tree;
}

Mesh random_mesh(Random& random) {
  static const std::vector<std::vector<std::int64_t>> kShapes{
      {1}, {2}, {3}, {4}, {8}, {2, 2}, {4, 2}, {2, 3}, {4, 4}, {2, 2, 2}, {1, 4}};
  const auto& shape = kShapes[static_cast<std::size_t>(
      up_to(random, static_cast<std::int64_t>(kShapes.size()) - 1))];
  std::vector<std::string> names{"data", "fsdp", "model"};
  names.resize(shape.size());
  return {shape, names};
}

Sharding random_sharding(Random& random, const Mesh& mesh, const Shape& shape) {
  std::vector<std::vector<std::string>> dims(static_cast<std::size_t>(shape.size()));
  for (const std::string& axis : mesh.axis_names()) {
    const std::int64_t dim = up_to(random, shape.size());
    if (dim < shape.size()) dims[static_cast<std::size_t>(dim)].push_back(axis);
  }
  std::vector<AxisNames> spec;
  for (const auto& axes : dims) {
    AxisNames names;
    if (axes.size() == 1) names = AxisNames(axes[0]);
    if (axes.size() == 2) names = AxisNames{axes[0], axes[1]};
    if (axes.size() == 3) names = AxisNames{axes[0], axes[1], axes[2]};
    spec.push_back(std::move(names));
  }
  return Sharding::from_spec(mesh, PartitionSpec(std::move(spec)), shape, "tensor");
}

std::vector<Sharding> random_shardings(Random& random, const Mesh& mesh, const Tree& tree) {
  std::vector<Sharding> shardings;
  for (const TreeTensor& tensor : tree) {
    shardings.push_back(random_sharding(random, mesh, tensor.type.shape));
  }
  return shardings;
}

std::vector<std::byte> shard_of(const TreeTensor& tensor, const Sharding& sharding,
                                const Mesh& mesh, int position) {
  PlacedBox placed;
  std::vector<std::byte> shard = empty_shard(tensor.type, sharding, mesh, placed, position);
  const auto element = byte_size(tensor.type.dtype);
  // Copies element by element, so that the test doesn't rely on the code under test.
  Shape at = placed.box.dims;
  for (int d = 0; d < at.size(); ++d) at[d] = 0;
  for (std::int64_t n = placed.box.dims.num_elements(); n > 0; --n) {
    std::int64_t from = 0;
    std::int64_t to = 0;
    for (int d = 0; d < at.size(); ++d) {
      from = from * tensor.type.shape[d] + placed.box.offsets[d] + at[d];
      to = to * placed.room[d] + at[d];
    }
    std::copy_n(tensor.elements.begin() + from * element, element, shard.begin() + to * element);
    for (int d = at.size() - 1; d >= 0 && ++at[d] == placed.box.dims[d]; --d) at[d] = 0;
  }
  return shard;
}

std::string save_tree(FileSystem& files, const std::string& folder, const Tree& tree,
                      const Mesh& mesh, const std::vector<Sharding>& shardings,
                      const SaveOptions& options) {
  CheckpointManifest manifest{
      .step = options.step, .mesh_shape = mesh.shape(), .axis_names = mesh.axis_names(), .seed = 7};
  std::vector<ShardedTensor> tensors;
  for (std::size_t t = 0; t < tree.size(); ++t) {
    tensors.push_back({tree[t].type, shardings[t]});
    manifest.tensors.push_back(
        {.name = tree[t].name, .type = tree[t].type, .sharding = shardings[t]});
  }
  for (int worker = 0; worker < options.workers; ++worker) {
    manifest.files.push_back(part_name(worker, options.workers));
  }
  const std::string unfinished = begin_checkpoint(files, folder, options.step, "test",
                                                  static_cast<std::uint64_t>(options.attempt));
  const std::vector<OwnedBox> owned = assign_owners(tensors, mesh, all_positions(mesh));
  const int chips = mesh.size() / options.workers;
  for (int worker = 0; worker < options.workers; ++worker) {
    std::vector<std::vector<std::byte>> memory;
    std::vector<SourceShard> shards;
    std::vector<std::size_t> of;
    for (const OwnedBox& own : owned) {
      if (own.position / chips != worker) continue;
      const TreeTensor& tensor = tree[own.tensor];
      const Sharding& sharding = shardings[own.tensor];
      memory.push_back(shard_of(tensor, sharding, mesh, own.position));
      PlacedBox placed;
      (void)empty_shard(tensor.type, sharding, mesh, placed, own.position);
      std::int64_t row_bytes = byte_size(tensor.type.dtype);
      for (int d = 1; d < placed.room.size(); ++d) row_bytes *= placed.room[d];
      const std::int64_t first_row =
          placed.room.size() == 0 ? 0 : own.box.offsets[0] - placed.box.offsets[0];
      shards.push_back({.header = {.name = tensor.name,
                                   .type = tensor.type,
                                   .offsets = own.box.offsets,
                                   .dims = own.box.dims,
                                   .mesh_coords = mesh.coords(own.position),
                                   .step = options.step},
                        .elements = memory.back().data() + first_row * row_bytes,
                        .room = placed.room});
      of.push_back(own.tensor);
    }
    const std::string part = part_name(worker, options.workers);
    const std::atomic<bool> stop{false};
    const auto stored =
        write_part(files, unfinished + "/" + part, shards,
                   {.threads = options.threads, .file = static_cast<std::uint32_t>(worker)}, stop);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      manifest.tensors[of[i]].shards.push_back(stored[i]);
    }
    if (options.has_tables) {
      write_part_table(files, unfinished, worker, options.workers, manifest);
      for (StoredTensor& tensor : manifest.tensors) tensor.shards.clear();
    }
  }
  if (options.has_tables) return join_parts(files, folder, unfinished, options.workers);
  return commit_checkpoint(files, folder, unfinished, manifest);
}

std::vector<std::string> differing(const std::string& checkpoint, const Tree& tree,
                                   const Mesh& mesh, const std::vector<Sharding>& shardings) {
  const CheckpointManifest manifest = read_manifest(checkpoint);
  std::vector<WantedBox> wanted;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::string> wrong;
  for (std::size_t t = 0; t < tree.size(); ++t) {
    const auto named = [&](const StoredTensor& tensor) { return tensor.name == tree[t].name; };
    const auto found = std::ranges::find_if(manifest.tensors, named);
    if (found == manifest.tensors.end()) {
      wrong.push_back(tree[t].name);
      continue;
    }
    for (int position = 0; position < mesh.size(); ++position) {
      PlacedBox placed;
      memory.push_back(empty_shard(tree[t].type, shardings[t], mesh, placed, position));
      wanted.push_back({.tensor = static_cast<std::size_t>(found - manifest.tensors.begin()),
                        .placed = placed,
                        .memory = memory.back().data()});
    }
  }
  (void)read_boxes(checkpoint, manifest, wanted, {.threads = 2});
  std::size_t i = 0;
  for (std::size_t t = 0; t < tree.size() && wrong.empty(); ++t) {
    for (int position = 0; position < mesh.size(); ++position, ++i) {
      if (memory[i] != shard_of(tree[t], shardings[t], mesh, position)) {
        wrong.push_back(tree[t].name);
      }
    }
  }
  return wrong;
}

}  // namespace weft::testing
