#include "transport/state/kept_state.hpp"

#include <span>
#include <unordered_map>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/state/state_directory.hpp"

namespace weft {

int keeper_of(const std::string& name, const Sharding& sharding, const Mesh& mesh, int position) {
  const std::vector<int> replicas = sharding.replicas(mesh, position);
  return replicas[xxh3(std::as_bytes(std::span(name))) % replicas.size()];
}

KeptState::KeptState(JobMemory& memory, const Mesh& mesh, int chips_per_worker, std::uint64_t step)
    : memory_(memory), mesh_(mesh), chips_per_worker_(chips_per_worker) {
  for (int worker = 0; worker < chips_per_host(mesh) / chips_per_worker; ++worker) {
    const int first = worker * chips_per_worker;
    auto table = StateDirectory(memory, mesh, first).read(step);
    if (!table) {
      fail(Errc::corrupt,
           "the state directory of chip {} doesn't have step {}, at which the job would continue",
           first, step);
    }
    loaders_.push_back(std::move(table->loaders));
    commands_.push_back(std::move(table->commands));
    if (worker > 0) {
      keep_only_of(std::move(table->tensors), worker, step);
      continue;
    }
    for (StateEntry& entry : table->tensors) {
      tensors_.push_back({.name = std::move(entry.name),
                          .type = entry.type,
                          .sharding = entry.sharding,
                          .kind = entry.kind,
                          .offsets = {entry.offset}});
    }
  }
}

void KeptState::keep_only_of(std::vector<StateEntry> state, int worker, std::uint64_t step) {
  std::unordered_map<std::string, const StateEntry*> by_name;
  for (const StateEntry& entry : state) by_name.emplace(entry.name, &entry);
  std::erase_if(tensors_, [&](KeptTensor& tensor) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end()) return true;
    const StateEntry& entry = *found->second;
    if (entry.type != tensor.type || !entry.sharding.same_layout(tensor.sharding)) {
      fail(Errc::corrupt, "the state directories of chips 0 and {} differ in '{}' of step {}",
           worker * chips_per_worker_, tensor.name, step);
    }
    tensor.offsets.push_back(entry.offset);
    return false;
  });
}

KeptShard KeptState::place(const KeptTensor& tensor, int position) const {
  const int keeper = keeper_of(tensor.name, tensor.sharding, mesh_, position);
  const int worker = chip_on_host(mesh_, keeper) / chips_per_worker_;
  return {keeper, tensor.offsets[static_cast<std::size_t>(worker)]};
}

const std::byte* KeptState::shard(const KeptTensor& tensor, int position) const {
  const KeptShard kept = place(tensor, position);
  return memory_.arena(chip_on_host(mesh_, kept.position)) + kept.offset;
}

}  // namespace weft
