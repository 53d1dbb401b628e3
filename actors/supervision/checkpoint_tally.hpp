#pragma once
/// CheckpointTally: decides which checkpoints are whole, and from which step and checkpoint the
/// loops continue. A checkpoint is whole if every worker has its part in it. Loops report
/// checkpoints, and CheckpointManagers save them. CheckpointTally does no I/O, and its size is
/// bounded.

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
  /// With `keeps_state`, the chips keep the state of a step until all chips have the state of the
  /// next step. `resume` is the checkpoint with which the job begins.
  explicit CheckpointTally(int num_workers, bool keeps_state = true,
                           std::optional<WholeCheckpoint> resume = {})
      : num_workers_(static_cast<std::size_t>(num_workers)),
        keeps_state_(keeps_state),
        resume_(std::move(resume)),
        last_(resume_) {}

  /// Lets each host store its own copy of each checkpoint. The first worker of each host joins the
  /// parts of that host's workers. Worker 0 is last, so that a checkpoint on host 0 always has
  /// copies on all hosts.
  void store_per_host(int num_hosts) { num_hosts_ = num_hosts; }
  /// Lets the job begin with this checkpoint instead of the constructor's.
  void resume_from(std::optional<WholeCheckpoint> resume) { last_ = resume_ = std::move(resume); }
  /// Sets a host's copy of last(), because another process has taken the place of that host. `path`
  /// is "" if the new process has no copy.
  void set_copy(int host, const std::string& path);
  /// Records any worker's report. A checkpoint that all workers have reported is whole.
  void reported(const Report& report);
  /// Records that a worker has written its part of a save, or has failed to. When all parts are
  /// written, the workers are told to join them. After a failure, the other workers may stop
  /// writing; the save ends when no worker writes to it any more.
  Actions part_written(const PartWritten& part);
  /// If a loop ended with this message because a worker couldn't write its part, returns that
  /// worker.
  std::optional<int> culprit(std::string_view message) const;
  /// Records that a worker has joined the parts of a save, or has failed to.
  Actions save_ended(const SaveEnded& ended);
  /// Called when the loops of `generation` begin at `step`. The loops make checkpoints of later
  /// steps again.
  void begin_generation(std::uint64_t generation, std::uint64_t step);
  /// Called when a host is lost that had the only copy of parts of the state. The next generation
  /// then continues from the last whole checkpoint.
  void lose_kept_state() { has_kept_state_ = false; }
  /// Returns the step at which the loops would continue if the generation ended now. `committed` is
  /// the last step that all chips have committed.
  std::uint64_t next_begin(std::uint64_t committed) const;
  /// Returns the checkpoint that loops must load when they begin at `step`; nothing if the chips
  /// have the state of that step. The chips never have the state of a checkpoint with which the job
  /// began.
  std::optional<WholeCheckpoint> to_load(std::uint64_t step) const;
  /// Returns the latest whole checkpoint.
  const std::optional<WholeCheckpoint>& last() const { return last_; }
  /// Returns the step of the latest whole checkpoint if a CheckpointManager saved it, else 0.
  std::uint64_t saved_step() const { return last_ && last_->is_saved ? last_->step : 0; }
  /// Returns the path of the latest whole checkpoint; "" if there is none.
  std::string last_path() const { return last_ ? last_->path : ""; }

 private:
  struct Part {
    std::uint64_t step = 0;
    std::set<int> workers{};
  };
  struct Save {
    std::uint64_t number = 0;
    std::set<int> workers{};  ///< workers that have written their parts, or failed to
    std::optional<SaveEnded> failure{};
    int culprit = -1;
    std::map<int, std::string> copies{};  ///< paths of the copies, by the worker that has joined
                                          ///< the copy
    bool is_over = false;
  };
  Actions copy_ended(const SaveEnded& ended);

  std::size_t num_workers_;
  int num_hosts_ = 1;  ///< the number of hosts that store copies; 1: all hosts store to one folder
  const bool keeps_state_;
  bool has_kept_state_ = keeps_state_;
  std::optional<WholeCheckpoint> resume_;
  std::uint64_t generation_ = 1;
  std::optional<Save> save_;  ///< the last save of this generation
  std::map<std::string, Part>
      parts_;  ///< checkpoints that only some workers have reported, by path; none is older than
               ///< last_
  std::optional<WholeCheckpoint> last_;
};

}  // namespace weft
