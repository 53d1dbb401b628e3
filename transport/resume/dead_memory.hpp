#pragma once
/// DeadMemory: reads the state of a dead job from the memory of one of its hosts, for a rescue.

#include <cstdint>
#include <string>
#include <vector>

#include "data/files/file_system.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/format/run_card.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/state/kept_state.hpp"

namespace weft {

class DeadMemory {
 public:
  /// Opens the segments with this id. Throws not_found, version, or corrupt if the segments
  /// contradict the card.
  DeadMemory(const std::string& memory_id, RunCard card);

  /// Returns the newest step whose state all chips of this host have.
  std::uint64_t step() const;
  /// Returns the steps at which the job may continue and whose state all chips of this host have,
  /// in order. step() is the last. The steps before it are those at which slower hosts may be.
  std::vector<std::uint64_t> steps();
  /// Returns whether the state of step() is divided: other hosts have parts of it that this host
  /// lacks.
  bool is_divided();
  const std::string& run_dir() const { return run_dir_; }

  /// A part of a checkpoint, which write_part() has written.
  struct Part {
    CheckpointManifest table{};  ///< lists all tensors, and the shards of this part
    std::int64_t bytes = 0;      ///< size of all tensors
  };
  /// Writes the state of a step to part `part` of `num_parts` in the folder. A single part has all
  /// of the state. Of several parts, part i has the shards of host i, except those that a host
  /// before it has too. Throws corrupt and the errors of writing.
  Part write_part(FileSystem& files, const std::string& folder, std::uint64_t step, int part,
                  int num_parts);

 private:
  KeptState state(std::uint64_t step) {
    return {memory_, mesh_, mesh_.size() / card_.num_workers, step};
  }
  bool has_table(std::uint64_t step);
  bool writes(const Sharding& sharding, int position, bool is_alone) const;

  RunCard card_;
  Mesh mesh_;  ///< as in_one_memory() returns it if the job ran on one host
  JobMemory memory_;
  std::string run_dir_;
};

}  // namespace weft
