#include "actors/host/checkpoint_place.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "data/remote/storages.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

/// Returns the folder in which host 0 leaves its mark: the folder of the checkpoints, or the run
/// folder if it contains the former, which then doesn't exist before the first save.
std::string marked_folder(const std::string& checkpoints, const std::string& run_dir) {
  return checkpoints.starts_with(run_dir + "/") ? run_dir : checkpoints;
}

}  // namespace

CheckpointPlace::CheckpointPlace(const JobSpec& spec, std::string job)
    : spec_(spec), job_(std::move(job)), path_(spec.checkpoint.path) {}

void CheckpointPlace::take(const std::string& folder) {
  const std::string host =
      spec_.place.count == 1 ? "" : fmt::format("host {} of ", spec_.place.index);
  lock_.emplace(folder, fmt::format("{}job {} (pid {})", host, job_, ::getpid()));
  remove_unfinished(posix_file_system(), folder);
}

void CheckpointPlace::take() {
  if (!path_.empty() && spec_.mesh) take(path_);
}

bool CheckpointPlace::leave_mark(const Assignment& assignment) {
  path_ = assignment.checkpoint.path;
  if (spec_.place.count == 1 || !spec_.mesh || is_remote(path_)) return false;
  mark_.emplace(marked_folder(path_, assignment.run_dir), job_);
  return true;
}

HostFolder CheckpointPlace::find(const HostWelcome& welcome, const std::function<void()>& wait) {
  const Assignment& assignment = welcome.assignment;
  const bool is_named = !path_.empty();
  if (!is_named) path_ = assignment.checkpoint.path;
  HostFolder found{.host = spec_.place.index, .machine = machine_name(), .path = path_};
  found.copies.resize(welcome.offered.size());
  found.is_shared =
      !is_remote(path_) && find_mark(marked_folder(path_, assignment.run_dir), job_, wait);
  if (found.is_shared || is_remote(path_)) return found;
  if (is_named) take(path_);
  const auto there = list_checkpoints(path_);
  if (!there.empty()) found.newest = there.back().step;
  found.copies = find_copies(path_, spec_.resume.path, welcome.offered);
  return found;
}

}  // namespace weft
