#pragma once
/// What jobs have on this host, and whether they live: what `weft sweep` removes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A job that has neither lock nor process counts as starting as long as it has something younger.
inline constexpr std::int64_t kStartingSeconds = 60;

enum class JobLife : std::uint8_t {
  alive = 0,
  starting = 1,
  dead = 2,
  unknown = 3,  ///< its lock can't be asked for: somebody else has put something there
};
std::string_view to_string(JobLife life) noexcept;

/// What one job of this user has in /dev/shm and in the control roots (job_folder.hpp).
struct JobRemains {
  std::string job;
  JobLife life = JobLife::alive;
  std::string why;                    ///< by what that is known
  std::vector<std::string> segments;  ///< names, sorted
  std::uint64_t bytes = 0;            ///< of memory that the segments take
  std::vector<std::string> roots;     ///< where it has a folder or a lock
};

/// Of all jobs of this user, by id. A job lives if a process holds its lock, or the lock that its
/// trainer has on its board, or has one of its segments open; the kernel says so, and no number in
/// a file. Throws io where there is nothing to look at.
std::vector<JobRemains> find_remains();

/// Looks again whether it is dead, and removes all that it has. Returns what could not be removed,
/// as paths; all of it where the job isn't dead.
std::vector<std::string> remove_remains(const JobRemains& remains);

}  // namespace weft
