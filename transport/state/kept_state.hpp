#pragma once
/// KeptState: the state of a job after some step, in the memory of its chips. The directories of
/// all workers say where it is.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/format/state_table.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Returns the position of the keeper among the chips that hold the same shard as this one. The
/// keeper doesn't overwrite the previous version. Tensors are distributed by name, so that no chip
/// keeps all of them.
int keeper_of(const std::string& name, const Sharding& sharding, const Mesh& mesh, int position);

struct KeptTensor {
  std::string name{};
  TensorType type{};  ///< global
  Sharding sharding{};
  StateKind kind = StateKind::param;
  std::vector<std::uint64_t> offsets{};  ///< offset of the shard in the arenas, by worker
};

/// The chip at this position in the mesh, and the place in its arena.
struct KeptShard {
  int position = 0;
  std::uint64_t offset = 0;
};

class KeptState {
 public:
  /// Reads the state of `step`, a step that every chip still has (common_step()). Each worker
  /// drives `chips_per_worker` chips, in order of their ids. Throws corrupt or version if a
  /// directory isn't valid, doesn't have that step, or contradicts another one. The memory must
  /// outlive it.
  KeptState(JobMemory& memory, const Mesh& mesh, int chips_per_worker, std::uint64_t step);

  /// The tensors that all workers have. If one loop has dropped a tensor, no program of all workers
  /// can have it.
  const std::vector<KeptTensor>& tensors() const { return tensors_; }
  /// The loaders of a worker's loop.
  const std::vector<StoredLoader>& loaders(std::size_t worker) const { return loaders_[worker]; }
  /// Returns where the keeper of one of these tensors has the shard of the chip at `position`, with
  /// its padding.
  KeptShard place(const KeptTensor& tensor, int position) const;
  const std::byte* shard(const KeptTensor& tensor, int position) const;

 private:
  void keep_only_of(std::vector<StateEntry> state, int worker, std::uint64_t step);

  JobMemory& memory_;
  const Mesh& mesh_;
  const int chips_per_worker_;
  std::vector<KeptTensor> tensors_;
  std::vector<std::vector<StoredLoader>> loaders_;  // by worker
};

}  // namespace weft
