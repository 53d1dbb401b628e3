#pragma once
/// CheckpointManager: saves the state of a training loop, from which the job goes on after a loss,
/// and later jobs, on any mesh (torch_xla's distributed_checkpoint.CheckpointManager).
///
///   weft::CheckpointManager checkpoints;
///   while (ctx.step() < num_steps) {
///     ...                                               // ends a step
///     checkpoints.save_async(state_dict(net, adam));    // at each RunConfig::checkpoint interval
///   }

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/config.hpp>
#include <weft/state.hpp>

namespace weft {

class JobCheckpoints;

struct SaveOptions {
  /// Numbers about this step, kept with the checkpoint; CheckpointConfig::best_by is one of them.
  Metrics metrics{};
  /// The program's own JSON value, up to 1 MiB as text, kept with the checkpoint.
  Config user{};
  bool force = false;  ///< save at this step, due or not
};

/// A checkpoint holds tensors of all dtypes by their names, each element once, the step, the seed
/// and SaveOptions. It appears in CheckpointConfig::path whole, or not at all: a job that is killed
/// at any moment leaves the checkpoints before. Each worker writes a part of it, straight from the
/// memory of its chips.
///
/// All workers must save at the same steps and lines; if one doesn't, the job ends with an error
/// that names both lines. If a tensor was recorded to change since the last sync, save() throws
/// invalid_argument: save right after the call that ends a step.
class CheckpointManager {
 public:
  /// Saves as RunConfig::checkpoint says, for the loop on this thread. Throws not_found outside a
  /// loop, unavailable if the job has no mesh.
  CheckpointManager();

  /// Whether a save is due: ctx.step() is a multiple of CheckpointConfig::save_interval, but not 0,
  /// or the job has been asked to end (SIGTERM) and CheckpointConfig::on_preemption is set.
  bool should_save() const;

  /// Saves if a save is due, and returns whether it did, once the checkpoint is durable. Throws io
  /// or no_space, on all workers, if one of them can't write.
  bool save(std::span<const Parameter> state, const SaveOptions& options = {},
            std::source_location where = std::source_location::current());
  /// As save(), but returns at once: the training goes on while the checkpoint is written in the
  /// background. Until then the saved values stay in memory beside those of later steps; if that
  /// takes too much memory, the loop waits for the writer. Waits for the save before. A save that
  /// fails is logged; the second in a row throws, as does the last one of the loop.
  bool save_async(std::span<const Parameter> state, const SaveOptions& options = {},
                  std::source_location where = std::source_location::current());
  /// Returns once the last save_async() has ended. Throws as save().
  void wait();

  /// The steps of the checkpoints in CheckpointConfig::path, ascending.
  std::vector<std::uint64_t> all_steps() const;
  std::optional<std::uint64_t> latest_step() const;
  /// Loads the checkpoint of this step, as load() does. A loop that goes on after a loss, or by
  /// RunConfig::resume, has its state already. Throws not_found, naming the steps that there are.
  LoadResult restore(std::uint64_t step, std::span<const Parameter> state,
                     const LoadOptions& options = {},
                     std::source_location where = std::source_location::current());
  /// SaveOptions::user of the checkpoint from which this loop goes on; null if there is none.
  Config user() const;

 private:
  JobCheckpoints* checkpoints_;
};

}  // namespace weft
