#pragma once
/// KeptState: finds the state of a job after some step in the memory of a host, by the
/// directories of its workers.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/format/state_table.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// The source of the state from which a worker's loop continues.
enum class StateSource : std::uint8_t {
  checkpoint,  ///< in a checkpoint, or nowhere
  host,        ///< in the memory of the host, whose directories say where
  worker,      ///< all shards of the worker's chips are in their own memory
};

/// Returns the position of the keeper: among the chips that hold the same shard as the chip at
/// `position`, the one that doesn't overwrite the previous version. Keepers are chosen by the name
/// of the tensor, so that no chip is the keeper of all tensors.
int keeper_of(const std::string& name, const Sharding& sharding, const Mesh& mesh, int position);

struct KeptTensor {
  std::string name{};
  TensorType type{};  ///< of the global tensor
  Sharding sharding{};
  StateKind kind = StateKind::param;
  std::vector<std::uint64_t> offsets{};  ///< by worker of the host: place of the shard
};

/// The chip that has a shard, by its position in the mesh, and the place in its arena.
struct KeptShard {
  int position = 0;
  std::uint64_t offset = 0;
};

class KeptState {
 public:
  /// Reads the state of `step`, a step that every chip still has (common_step()). Each worker
  /// drives `chips_per_worker` chips, in order of their ids. Throws corrupt or version if a
  /// directory isn't valid, doesn't have that step, or contradicts another one. `memory` must
  /// outlive this object.
  KeptState(JobMemory& memory, const Mesh& mesh, int chips_per_worker, std::uint64_t step);

  /// Returns the tensors that all workers have. A tensor that one loop has dropped can't be used by
  /// any later program, because all workers run the same programs.
  const std::vector<KeptTensor>& tensors() const { return tensors_; }
  /// Returns the loaders of the loop of a worker, which is counted on its host.
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
