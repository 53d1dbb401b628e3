#include "inspect/programs/shards.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"
#include "spmd/mesh/box.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/program/element.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/state/commits.hpp"
#include "transport/state/kept_state.hpp"

namespace weft {
namespace {

/// The number of times that reading is tried, because a running job may overwrite the data during a
/// try.
constexpr int kTries = 3;

ShardValues values_of(DType dtype, std::span<const std::byte> bytes) {
  ShardValues values{.min = std::numeric_limits<double>::infinity(),
                     .max = -std::numeric_limits<double>::infinity(),
                     .digest = XXH3_64bits(bytes.data(), bytes.size())};
  const auto size = static_cast<std::size_t>(byte_size(dtype));
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    const double value = load_element(dtype, bytes.data() + at);
    if (std::isnan(value)) {
      ++values.nans;
      continue;
    }
    if (std::isinf(value)) ++values.infinities;
    values.min = std::min(values.min, value);
    values.max = std::max(values.max, value);
  }
  return values;
}

/// Reads a tensor. Chips whose shards have the same position in the tensor share one entry.
TensorShards read_tensor(const KeptTensor& tensor, const KeptState& state, const Mesh& mesh) {
  TensorShards shards{.name = tensor.name,
                      .kind = tensor.kind,
                      .type = tensor.type,
                      .sharding = tensor.sharding.to_string(mesh, tensor.type.shape.size())};
  std::vector<int> keepers;
  for (int position = 0; position < mesh.size(); ++position) {
    const int keeper = keeper_of(tensor.name, tensor.sharding, mesh, position);
    auto known = std::ranges::find(keepers, keeper);
    if (known == keepers.end()) {
      const PlacedBox placed = shard_box(tensor.type.shape, tensor.sharding, mesh, position);
      const auto bytes = placed.room.num_elements() * byte_size(tensor.type.dtype);
      const std::span<const std::byte> elements(state.shard(tensor, position),
                                                static_cast<std::size_t>(bytes));
      shards.shards.push_back({.bytes = bytes, .values = values_of(tensor.type.dtype, elements)});
      known = keepers.insert(keepers.end(), keeper);
    }
    const auto index = static_cast<std::size_t>(known - keepers.begin());
    shards.shards[index].chips.push_back(mesh.device_at(position));
  }
  return shards;
}

JobShards read_once(JobMemory& memory, const Mesh& mesh, int num_workers,
                    const std::string& names) {
  JobShards shards{.step = common_step(memory)};
  const KeptState state(memory, mesh, mesh.size() / num_workers, shards.step);
  for (const KeptTensor& tensor : state.tensors()) {
    if (tensor.name.find(names) == std::string::npos) continue;
    shards.tensors.push_back(read_tensor(tensor, state, mesh));
  }
  shards.whole = common_step(memory) == shards.step;
  return shards;
}

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

nlohmann::json number_json(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

}  // namespace

JobShards read_shards(const Snapshot& job, const std::string& names) {
  const std::optional<Mesh> mesh = job.mesh();
  const int workers = std::max(job.header.num_workers, 1);
  if (!job.live || !job.arenas_named || !mesh || mesh->size() % workers != 0) {
    fail(Errc::not_found,
         "the state of job {} can't be read: the job must keep its state for a loss or a rescue "
         "(run.failure.max_failures or run.keep_for_rescue_s above 0), and its memory must still "
         "exist; for a checkpoint, use weft inspect FOLDER",
         job.job);
  }
  JobMemory memory = JobMemory::open(job.job);
  if (memory.num_chips() != mesh->size()) {
    fail(Errc::corrupt, "job {}: its board has {} chips, but its memory has {}", job.job,
         mesh->size(), memory.num_chips());
  }
  JobShards shards;
  for (int i = 0; i < kTries; ++i) {
    shards = read_once(memory, in_one_memory(*mesh), workers, names);
    if (shards.whole) break;
  }
  return shards;
}

std::string shards_text(const Snapshot& job, const JobShards& shards) {
  Table table({columns::kTensor, columns::kKind, columns::kType, columns::kSharding,
               columns::kOfChips, columns::kSize, columns::kMin, columns::kMax, columns::kNan,
               columns::kInf, columns::kXxh3});
  for (const TensorShards& tensor : shards.tensors) {
    for (const TensorShard& shard : tensor.shards) {
      const ShardValues& values = shard.values;
      table.add({tensor.name, std::string(to_string(tensor.kind)), tensor.type.to_string(),
                 tensor.sharding, ranges_text(shard.chips), bytes_text(shard.bytes),
                 number_text(values.min), number_text(values.max), std::to_string(values.nans),
                 std::to_string(values.infinities), fmt::format("{:016x}", values.digest)});
    }
  }
  std::string text =
      fmt::format("job {}, step {}\n\n{}", visible(job.job), shards.step, table.to_string());
  if (!shards.whole) {
    text += "\nthe job continued while its state was read, so some values are from later steps\n";
  }
  return text;
}

std::string shards_json(const Snapshot& job, const JobShards& shards) {
  nlohmann::json json{{"schema", "weft.shards/1"},
                      {"job", job.job},
                      {"step", shards.step},
                      {"whole", shards.whole},
                      {"tensors", nlohmann::json::array()}};
  for (const TensorShards& tensor : shards.tensors) {
    nlohmann::json entry{{"name", tensor.name},
                         {"kind", to_string(tensor.kind)},
                         {"type", tensor.type.to_string()},
                         {"sharding", tensor.sharding},
                         {"shards", nlohmann::json::array()}};
    for (const TensorShard& shard : tensor.shards) {
      entry["shards"].push_back({{"chips", shard.chips},
                                 {"bytes", shard.bytes},
                                 {"min", number_json(shard.values.min)},
                                 {"max", number_json(shard.values.max)},
                                 {"nans", shard.values.nans},
                                 {"infinities", shard.values.infinities},
                                 {"xxh3", fmt::format("{:016x}", shard.values.digest)}});
    }
    json["tensors"].push_back(std::move(entry));
  }
  return json_text(json);
}

}  // namespace weft
