// The part of WorkerRuntime that moves tensors between the host and its chips.

#include <algorithm>
#include <chrono>
#include <functional>

#include "actors/runtime/arena_buffer.hpp"
#include "actors/runtime/worker_runtime.hpp"
#include "spmd/mesh/shard_copy.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/tensor/node.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

void WorkerRuntime::upload(const std::vector<std::byte>& global, const Buffer& buffer) {
  const auto begin = Clock::now();
  const TensorType& type = buffer.type();
  WEFT_CHECK(static_cast<std::int64_t>(global.size()) == type.bytes(), global.size(), type.bytes());
  const auto dims = static_cast<std::size_t>(type.shape.size());
  const auto sizes = buffer.sharding().local_shape(mesh_, type.shape);
  const auto& placed = static_cast<const ArenaBuffer&>(buffer);
  const auto shard_bytes =
      static_cast<std::size_t>(chip_type(type, buffer.sharding(), mesh_).bytes());
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    const auto offsets = buffer.sharding().offsets(mesh_, positions_[i], type.shape);
    const ShardBox box{std::span(offsets).first(dims), std::span(sizes).first(dims)};
    devices_[i]->engine().upload(placed.offset(i), shard_bytes, [&](std::byte* shard) {
      copy_shard(type, global.data(), box, shard);
    });
  }
  metrics().sample("TransferToDeviceTime", MetricUnit::seconds, seconds_since(begin));
  metrics().sample("OutboundData", MetricUnit::bytes,
                   static_cast<double>(shard_bytes) * static_cast<double>(positions_.size()));
}

/// Uploads the tensor of `source`. Opens the memory of all chips first, so that the source is read
/// only once.
void WorkerRuntime::read_source(const TensorSource& source, const Buffer& buffer) {
  const auto begin = Clock::now();
  const TensorType& type = buffer.type();
  const auto& placed = static_cast<const ArenaBuffer&>(buffer);
  const auto shard_bytes =
      static_cast<std::size_t>(chip_type(type, buffer.sharding(), mesh_).bytes());
  std::vector<TensorSource::Target> targets;
  const std::function<void(std::size_t)> open_from = [&](std::size_t chip) {
    if (chip == positions_.size()) return source.read(targets);
    devices_[chip]->engine().upload(placed.offset(chip), shard_bytes, [&](std::byte* shard) {
      const PlacedBox box = shard_box(type.shape, buffer.sharding(), mesh_, positions_[chip]);
      if (box.box.dims != box.room) std::fill_n(shard, shard_bytes, std::byte{0});
      targets.push_back({box, shard});
      open_from(chip + 1);
    });
  };
  open_from(0);
  metrics().sample("TransferToDeviceTime", MetricUnit::seconds, seconds_since(begin));
  metrics().sample("OutboundData", MetricUnit::bytes,
                   static_cast<double>(shard_bytes) * static_cast<double>(positions_.size()));
}

/// Makes a buffer that the host writes. `completed` is a run that has ended with all runs before
/// it.
BufferPtr WorkerRuntime::make_written_by_host(const TensorType& type, const ProgramInput& input,
                                              std::uint64_t completed) {
  const std::int64_t bytes = chip_type(type, input.sharding, mesh_).bytes();
  const bool is_kept = state_.has_value() && is_state(input.kind);
  const std::uint64_t offset =
      is_kept ? pool_->allocate_state_for_host(bytes, common_step(memory_), completed)
              : pool_->allocate(bytes, completed);
  const BlockKind kind = is_kept ? BlockKind::state : BlockKind::plain;
  return std::make_shared<ArenaBuffer>(type, input.sharding, pool_, kind, offset, bytes);
}

BufferPtr WorkerRuntime::put_state(const ProgramInput& state, const TensorType& type,
                                   const std::vector<std::byte>& elements, const BufferPtr& before,
                                   const std::source_location& loc) {
  BufferPtr buffer =
      make_written_by_host(type, state, runs_ > kRunsUnderWay ? runs_ - kRunsUnderWay : 0);
  upload(elements, *buffer);
  if (state_) state_->put(state, type, before, buffer);
  if (options_.check_data != DataChecks::never) {
    const std::string label = fmt::format("{} {} (", state.name, type.to_string());
    const auto found = std::ranges::find_if(
        put_.tensors, [&](const std::string& other) { return other.starts_with(label); });
    const auto number = static_cast<std::size_t>(found - put_.tensors.begin());
    put_.tensors.resize(std::max(put_.tensors.size(), number + 1));
    put_.hashes.resize(put_.tensors.size());
    put_.tensors[number] = label + file_line(loc) + ")";
    put_.hashes[number] = sampled_hash(elements);
  }
  return buffer;
}

ChipInput WorkerRuntime::make_input(const TensorType& type, const Sharding& sharding) {
  const std::uint64_t completed = runs_ > kRunsUnderWay ? runs_ - kRunsUnderWay : 0;
  const std::int64_t bytes = chip_type(type, sharding, mesh_).bytes();
  const std::uint64_t offset = pool_->allocate(bytes, completed);
  ChipInput input{.buffer = std::make_shared<ArenaBuffer>(type, sharding, pool_, BlockKind::plain,
                                                          offset, bytes)};
  for (const auto& device : devices_) {
    std::byte* shard = device->engine().host_address(offset);
    if (shard == nullptr) {
      input.staged.emplace_back(new std::byte[static_cast<std::size_t>(bytes)]);
      shard = input.staged.back().get();
    }
    input.shards.push_back(shard);
  }
  return input;
}

void WorkerRuntime::deliver(const ChipInput& input, std::shared_ptr<const RowOrigin> rows) {
  const Buffer& buffer = *input.buffer;
  static_cast<ArenaBuffer&>(*input.buffer).came_from(std::move(rows));
  const auto bytes =
      static_cast<std::size_t>(chip_type(buffer.type(), buffer.sharding(), mesh_).bytes());
  const auto& placed = static_cast<const ArenaBuffer&>(buffer);
  for (std::size_t chip = 0; chip < input.staged.size(); ++chip) {
    devices_[chip]->engine().upload(placed.offset(chip), bytes, [&](std::byte* shard) {
      std::copy_n(input.staged[chip].get(), bytes, shard);
    });
  }
  metrics().sample("OutboundData", MetricUnit::bytes,
                   static_cast<double>(bytes) * static_cast<double>(positions_.size()));
}

std::shared_ptr<const std::byte> WorkerRuntime::host_shard(const BufferPtr& buffer,
                                                           std::size_t chip) {
  require_own(*buffer, "", nullptr);
  const auto& placed = static_cast<const ArenaBuffer&>(*buffer);
  Engine& engine = devices_[chip]->engine();
  const std::byte* address = engine.host_address(placed.offset(chip));
  if (address != nullptr) return {std::shared_ptr<void>(), address};
  wait_for_run(placed.last_run());
  const auto bytes =
      static_cast<std::size_t>(chip_type(buffer->type(), buffer->sharding(), mesh_).bytes());
  const auto copy = std::make_shared<std::vector<std::byte>>(bytes);
  engine.download(placed.offset(chip), *copy);
  return {copy, copy->data()};
}

std::vector<std::byte> WorkerRuntime::read(const Buffer& buffer) {
  WEFT_CHECK(buffer.sharding().is_replicated());
  require_own(buffer, "", nullptr);
  ++reads_;
  const auto& placed = static_cast<const ArenaBuffer&>(buffer);
  const auto begin_read = Clock::now();
  const StateScope running(recorder_, ActorState::running);
  wait_for_run(placed.last_run());
  metrics().sample("TransferFromDeviceTime", MetricUnit::seconds, seconds_since(begin_read));
  metrics().sample("InboundData", MetricUnit::bytes, static_cast<double>(buffer.type().bytes()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.type().bytes()));
  devices_.front()->engine().download(placed.offset(0), bytes);
  return bytes;
}

}  // namespace weft
