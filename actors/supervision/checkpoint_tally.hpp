#pragma once
/// CheckpointTally: which checkpoint of a run every worker has a part in: those that loops report,
/// and those that CheckpointManagers save. Pure, and of bounded size.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"
#include "actors/supervision/action.hpp"

namespace weft {

class CheckpointTally {
 public:
  explicit CheckpointTally(int num_workers) : num_workers_(static_cast<std::size_t>(num_workers)) {}

  struct Whole {
    std::uint64_t step = 0;
    std::string path{};
    bool is_saved = false;  ///< by a CheckpointManager: it has the state by names
  };

  /// Of any worker, with or without a checkpoint.
  void reported(const Report& report);
  /// The job goes on from this checkpoint.
  void resumed(std::uint64_t step, std::string path);
  /// A worker's part of a save. When all are written, worker 0 joins them. The first that could not
  /// be written stops the others; the save ends when no worker writes to it any more.
  Actions part_written(const PartWritten& part);
  /// Worker 0 has joined the parts, or could not.
  Actions save_ended(const SaveEnded& ended);
  /// Loops of `generation` begin at `step`: later checkpoints are made again.
  void begin_generation(std::uint64_t generation, std::uint64_t step);
  /// The latest that is whole.
  const std::optional<Whole>& last() const { return last_; }
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
    bool is_over = false;
  };
  std::size_t num_workers_;
  std::uint64_t generation_ = 1;
  std::optional<Save> save_;           ///< the last of this generation
  std::map<std::string, Part> parts_;  ///< by path: reported by some, not before the last whole one
  std::optional<Whole> last_;
};

}  // namespace weft
