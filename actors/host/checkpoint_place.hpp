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
  /// `spec` must outlive the object. `job` is the job's id, the same on all hosts.
  CheckpointPlace(const JobSpec& spec, std::string job);

  /// On host 0: takes the folder that the options name, if any, for this job alone, and removes
  /// unfinished checkpoints from it. Throws unavailable if another job has the folder, and io.
  void take();
  /// On host 0: if the other hosts have to look for a mark, leaves it for them and returns true.
  /// Throws io.
  bool leave_mark(const Assignment& assignment);

  /// On another host: returns what this host has found out about host 0's folder. If this host
  /// doesn't share that folder and the options name a folder, takes the named folder as take()
  /// does. Calls `wait` between two looks for the mark.
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
