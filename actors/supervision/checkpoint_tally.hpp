#pragma once
/// CheckpointTally: which checkpoints are whole, because every worker has its part in them, and
/// from which step and which checkpoint the loops go on. Loops report checkpoints, and
/// CheckpointManagers save them. Pure, and of bounded size.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"
#include "actors/supervision/action.hpp"

namespace weft {

class CheckpointTally {
 public:
  /// `keeps_state`: the chips keep the state of a step until all have that of the next one.
  /// `resume`: the checkpoint that the job begins with.
  explicit CheckpointTally(int num_workers, bool keeps_state = true,
                           std::optional<WholeCheckpoint> resume = {})
      : num_workers_(static_cast<std::size_t>(num_workers)),
        keeps_state_(keeps_state),
        resume_(std::move(resume)),
        last_(resume_) {}

  /// Of any worker, with or without a checkpoint.
  void reported(const Report& report);
  /// A worker's part of a save. When all are written, worker 0 joins them. The first that could not
  /// be written stops the others; the save ends when no worker writes to it any more.
  Actions part_written(const PartWritten& part);
  /// The worker that couldn't write its part, where a loop that ended with this message did so
  /// because of it.
  std::optional<int> culprit(std::string_view message) const;
  /// Worker 0 has joined the parts, or could not.
  Actions save_ended(const SaveEnded& ended);
  /// Loops of `generation` begin at `step`: later checkpoints are made again.
  void begin_generation(std::uint64_t generation, std::uint64_t step);
  /// The step at which the loops would go on now. `committed`: the last step that all chips have
  /// committed.
  std::uint64_t next_begin(std::uint64_t committed) const;
  /// The checkpoint to load when loops begin at `step`, because the chips don't have the state of
  /// that step: they never have that of the step at which the job began.
  std::optional<WholeCheckpoint> to_load(std::uint64_t step) const;
  /// The latest that is whole.
  const std::optional<WholeCheckpoint>& last() const { return last_; }
  /// Of the latest that is whole and a CheckpointManager's, 0 for none.
  std::uint64_t saved_step() const { return last_ && last_->is_saved ? last_->step : 0; }
  /// "" for none.
  std::string last_path() const { return last_ ? last_->path : ""; }

 private:
  struct Part {
    std::uint64_t step = 0;
    std::set<int> workers{};
  };
  struct Save {
    std::uint64_t number = 0;
    std::set<int> workers{};  ///< that have written their parts, or could not
    std::optional<SaveEnded> failure{};
    int culprit = -1;
    bool is_over = false;
  };
  std::size_t num_workers_;
  bool keeps_state_;
  std::optional<WholeCheckpoint> resume_;
  std::uint64_t generation_ = 1;
  std::optional<Save> save_;  ///< the last of this generation
  std::map<std::string, Part>
      parts_;  ///< by path: reported by some workers, and not older than last_
  std::optional<WholeCheckpoint> last_;
};

}  // namespace weft
