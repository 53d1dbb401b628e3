#pragma once
/// JobRemains: finds the files of jobs on this host, and says which jobs are alive, for `weft
/// sweep`.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A job that has no lock file and no process counts as starting while one of its files is younger
/// than this.
inline constexpr std::int64_t kStartingSeconds = 60;

enum class JobLife : std::uint8_t {
  alive = 0,
  starting = 1,
  dead = 2,
  unknown = 3,  ///< its lock can't be tested, because it isn't a plain file
  kept = 4,     ///< dead, but kept for a rescue (RunConfig::keep_for_rescue_s)
};
std::string_view to_string(JobLife life) noexcept;

/// The files of one job of this user in /dev/shm and in the control roots (job_folder.hpp).
struct JobRemains {
  std::string job;
  JobLife life = JobLife::alive;
  std::string why;                    ///< the reason for `life`
  int pid = 0;                        ///< a process that has the job's memory open; 0: none is
                                      ///< known
  std::vector<std::string> segments;  ///< names of the segments, sorted
  std::uint64_t bytes = 0;            ///< memory that the segments use
  std::vector<std::string> roots;     ///< control roots in which the job has a folder or a lock
};

/// Returns all jobs of this user, ordered by id. A job is alive if a process has its lock, the lock
/// on its board, or one of its segments open. So the kernel, and no process id in a file, shows
/// whether a job is alive. Throws io if the folders can't be read.
std::vector<JobRemains> find_remains();

/// Waits until no process of the job lives, but at most for `timeout`. Returns the job's state
/// after the wait; std::nullopt if the job has no files.
std::optional<JobRemains> wait_until_dead(std::string_view job, std::chrono::milliseconds timeout);

/// Removes the files of the job if it is still dead (or kept, if `even_kept`). Returns the paths
/// that remain: all paths if the job isn't dead.
std::vector<std::string> remove_remains(const JobRemains& remains, bool even_kept = false);

}  // namespace weft
