#pragma once
/// KeptState: the state of a job after some step, as the directories of a host's workers show it in
/// the host's memory.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/format/state_table.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// The source of the state of a worker's loop that continues.
enum class StateSource : std::uint8_t {
  checkpoint,  ///< in a checkpoint, or nowhere
  host,        ///< in the host's memory, at the places in the workers' directories
  worker,      ///< all shards of the worker's chips are in their own memory
};

/// Returns the position of the shard's keeper. The keeper is the one chip that doesn't overwrite
/// the previous version, among the chips that hold the same shard as the chip at `position`.
/// Keepers are chosen by the name of the tensor, so that no chip is the keeper of all tensors.
int keeper_of(const std::string& name, const Sharding& sharding, const Mesh& mesh, int position);

struct KeptTensor {
  std::string name{};
  TensorType type{};  ///< type of the global tensor
  Sharding sharding{};
  StateKind kind = StateKind::param;
  std::vector<std::uint64_t> offsets{};  ///< place of the shard, by worker of the host
};

/// The chip that has a shard, by its position in the mesh, and the shard's place in its arena.
struct KeptShard {
  int position = 0;
  std::uint64_t offset = 0;
};

class KeptState {
 public:
  /// Reads the state of `step`, which every chip must still have (common_step()). Each worker
  /// drives `chips_per_worker` chips, in order of their ids. Throws corrupt or version if a
  /// directory isn't valid, doesn't have this step, or contradicts another directory. `memory` must
  /// outlive this object.
  KeptState(JobMemory& memory, const Mesh& mesh, int chips_per_worker, std::uint64_t step);

  /// Returns the tensors that all workers have. Other tensors aren't needed: if one loop has
  /// dropped a tensor, no later program can use it, because all workers run the same programs.
  const std::vector<KeptTensor>& tensors() const { return tensors_; }
  /// Returns the loaders of a worker's loop. `worker` counts the workers of the host.
  const std::vector<StoredLoader>& loaders(std::size_t worker) const { return loaders_[worker]; }
  /// Returns the last commands that a worker's loop had read.
  const std::vector<CommandMark>& commands(std::size_t worker) const { return commands_[worker]; }
  /// Returns the place of the shard, with its padding, that the chip at `position` has of `tensor`.
  /// The place is in the arena of the shard's keeper.
  KeptShard place(const KeptTensor& tensor, int position) const;
  const std::byte* shard(const KeptTensor& tensor, int position) const;

 private:
  void keep_only_of(std::vector<StateEntry> state, int worker, std::uint64_t step);

  JobMemory& memory_;
  const Mesh& mesh_;
  const int chips_per_worker_;
  std::vector<KeptTensor> tensors_;
  std::vector<std::vector<StoredLoader>> loaders_;  // by worker
  std::vector<std::vector<CommandMark>> commands_;  // by worker
};

}  // namespace weft
