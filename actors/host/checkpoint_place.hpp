#pragma once
/// CheckpointPlace: owns a job's right to write checkpoints to this host's folder, and finds out
/// whether the hosts of a job share that folder (decision 0110).

#include <functional>
#include <optional>
#include <string>

#include "actors/protocol/host_messages.hpp"
#include "actors/trainer/job_spec.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/shared_folder.hpp"

namespace weft {

class CheckpointPlace {
 public:
  /// `spec` must outlive the object. `job` is the job's id on all hosts.
  CheckpointPlace(const JobSpec& spec, std::string job);

  /// On host 0: takes the folder that the options name, if they name one, and removes unfinished
  /// checkpoints from it. Throws unavailable if another job has it, and io.
  void take();
  /// On host 0: leaves a mark for the other hosts, if they have to look for one. Returns whether
  /// they have to. Throws io.
  bool leave_mark(const Assignment& assignment);

  /// On another host: returns what this host has found. If it doesn't share host 0's folder, takes
  /// its own, as take() does. Calls `wait` during a search.
  HostFolder find(const HostWelcome& welcome, const std::function<void()>& wait);
  /// Returns the folder of this host's checkpoints.
  const std::string& path() const { return path_; }

 private:
  void take(const std::string& folder);

  const JobSpec& spec_;
  const std::string job_;
  std::string path_;
  std::optional<CheckpointLock> lock_;
  std::optional<FolderMark> mark_;
};

}  // namespace weft
