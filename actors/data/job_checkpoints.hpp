#pragma once
/// JobCheckpoints: saves a worker's parts of the job's checkpoints during one generation.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/train/checkpoint_manager.hpp>

#include "actors/data/checkpoint_writer.hpp"
#include "actors/data/job_loaders.hpp"
#include "actors/runtime/worker_link.hpp"
#include "actors/runtime/worker_runtime.hpp"
#include "spmd/mesh/box.hpp"

namespace weft {

/// A part of a tensor that a chip of this worker owns (assign_owners()).
struct OwnShard {
  std::size_t tensor = 0;  ///< index of the tensor
  int position = 0;        ///< position in the mesh of the chip that owns it
  Box box{};
  Shape room{};                                 ///< the size of the memory that has the box, per
                                                ///< dim
  std::shared_ptr<const std::byte> elements{};  ///< begins with the first element of the box
  std::function<void()> read{};  ///< if set, fills the memory; must be called before the memory is
                                 ///< read
};

/// The parts of the state that this worker owns, with the values at the last sync.
struct OwnState {
  std::vector<Sharding> shardings{};  ///< the sharding of each tensor
  std::vector<OwnShard> shards{};
};
/// Returns the parts of `state` that this worker owns. Each shard has one owner among the chips at
/// `positions`. The buffers with the elements are added to `held`, and the elements are valid as
/// long as `held` has them; they are complete when the last run that has begun has ended. Throws
/// invalid_argument for a tensor that has changed since the last sync.
OwnState own_state(WorkerRuntime& runtime, std::span<const Parameter> state, HeldBuffers& held,
                   std::span<const int> positions, const std::source_location& where);

struct JobCheckpointsOptions {
  int worker = 0;
  int part = 0;
  int num_parts = 1;         ///< number of workers that store to the same folder
  bool is_per_host = false;  ///< each host stores to a folder of its own
  std::string job_id{};
  std::uint64_t seed = 0;
  CheckpointConfig config{};
  std::string resumed_from{};  ///< the checkpoint from which this generation continues; "": none
  std::optional<std::uint64_t> saved_step{};  ///< step of the job's last checkpoint
};

/// Only the loop's thread may use it. At most one save is in progress.
class JobCheckpoints : private LoopObserver {
 public:
  JobCheckpoints(WorkerRuntime& runtime, const JobLoaders& loaders, WorkerLink& link,
                 const Recorder& recorder, JobCheckpointsOptions options);
  ~JobCheckpoints() override;
  JobCheckpoints(const JobCheckpoints&) = delete;
  JobCheckpoints& operator=(const JobCheckpoints&) = delete;

  /// Returns a handle for a CheckpointManager, which becomes null when this object is destroyed.
  /// From now on the loop is known to save checkpoints.
  std::weak_ptr<JobCheckpoints> add_manager() {
    saves_ = true;
    return alive_;
  }
  const CheckpointConfig& config() const { return options_.config; }
  const std::string& resumed_from() const { return options_.resumed_from; }
  bool is_due() const;
  /// See CheckpointManager.
  void save(std::span<const Parameter> state, const SaveOptions& options, bool is_async,
            const std::source_location& where);
  /// Waits for the save in progress. If the save failed, throws its error if `is_strict` or if the
  /// previous save had failed too.
  void wait(bool is_strict);

 private:
  /// Throws unavailable if the loop has made a CheckpointManager and the program has state that
  /// require_whole() refuses. So such a loop fails before its first step.
  void runs(const Program& plan) override;
  void step_ended() override {}
  /// Throws unavailable if each host stores copies and this tensor is divided between hosts.
  void require_whole(const std::string& name, const Sharding& sharding) const;
  std::vector<int> storing_positions() const;
  PartJob describe(std::span<const Parameter> state, const SaveOptions& options,
                   const std::source_location& where) const;
  void add_shards(PartJob& job, std::span<const Parameter> state,
                  const std::source_location& where);
  std::uint64_t agree(const CheckpointManifest& table, const std::source_location& where);

  WorkerRuntime& runtime_;
  const JobLoaders& loaders_;
  WorkerLink& link_;
  const Recorder recorder_;
  const JobCheckpointsOptions options_;
  struct Pending {
    std::uint64_t save = 0;
    std::uint64_t step = 0;
  };
  std::optional<Pending> pending_;
  bool saves_ = false;       // whether the loop has made a CheckpointManager
  bool has_failed_ = false;  // whether the last save has failed
  std::string listing_;      // describes the tensors of the last save
  CheckpointWriter writer_;
  std::optional<std::uint64_t> saved_step_;
  const std::shared_ptr<JobCheckpoints> alive_{this, [](JobCheckpoints*) {}};
  bool is_one_missing_ = false;  // whether a save that was due in an earlier generation is missing
};

}  // namespace weft
