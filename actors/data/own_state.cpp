#include <algorithm>
#include <utility>

#include "actors/data/job_checkpoints.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/trace.hpp"
#include "transport/storage/shard_owners.hpp"

namespace weft {
namespace {

const Sharding& sharding_of(const Binding& value) {
  static const Sharding kReplicated = Sharding::closed();
  const auto* bound = std::get_if<BoundBuffer>(&value);
  return bound != nullptr ? bound->buffer->sharding() : kReplicated;
}

/// Returns the number of elements before the first element of `box`, in memory that holds a box
/// around it.
std::int64_t element_offset(const Box& box, const PlacedBox& memory) {
  std::int64_t offset = 0;
  for (int d = 0; d < memory.room.size(); ++d) {
    offset = offset * memory.room[d] + box.offsets[d] - memory.box.offsets[d];
  }
  return offset;
}

}  // namespace

OwnState own_state(WorkerRuntime& runtime, std::span<const Parameter> state, HeldBuffers& held,
                   std::span<const int> positions, const std::source_location& where) {
  const Mesh& mesh = *runtime.mesh();
  OwnState own;
  std::vector<Binding> values;
  std::vector<ShardedTensor> tensors;
  for (const Parameter& tensor : state) {
    const NodePtr& node = node_of(tensor, where);
    values.push_back(Trace::synced_value(node, where));
    own.shardings.push_back(sharding_of(values.back()));
    tensors.push_back({node->type, own.shardings.back()});
    if (const auto* bound = std::get_if<BoundBuffer>(&values.back())) {
      held.buffers.emplace_back(bound->buffer);
    }
  }
  const std::span<const int> local = runtime.positions();
  for (const OwnedBox& part : assign_owners(tensors, mesh, positions)) {
    const auto chip = std::ranges::find(local, part.position);
    if (chip == local.end()) continue;
    const TensorType& type = tensors[part.tensor].type;
    const Binding& value = values[part.tensor];
    OwnShard shard{.tensor = part.tensor, .position = part.position, .box = part.box};
    PlacedBox memory = whole_box(type.shape);
    if (const auto* bound = std::get_if<BoundBuffer>(&value)) {
      memory = shard_box(type.shape, bound->buffer->sharding(), mesh, part.position);
      shard.elements =
          runtime.host_shard(bound->buffer, static_cast<std::size_t>(chip - local.begin()));
    } else if (const auto* host = std::get_if<HostData>(&value)) {
      shard.elements = {*host, (*host)->data()};
    } else {
      memory = {.box = part.box, .room = part.box.dims};
      const auto bytes = static_cast<std::size_t>(TensorType{type.dtype, part.box.dims}.bytes());
      const auto read = std::make_shared<std::vector<std::byte>>(bytes);
      shard.elements = {read, read->data()};
      shard.read = [source = std::get<SourcePtr>(value), memory, read] {
        const TensorSource::Target target{memory, read->data()};
        source->read({&target, 1});
      };
    }
    const std::int64_t first = element_offset(part.box, memory) * byte_size(type.dtype);
    shard.elements = {shard.elements, shard.elements.get() + first};
    shard.room = memory.room;
    own.shards.push_back(std::move(shard));
  }
  return own;
}

}  // namespace weft
