#pragma once
/// Open files (descriptors) of a process: the number that a job needs, and the limits.

#include <cstddef>
#include <string>

namespace weft {

/// The open files of a job in the process that starts it, which has the most: for each worker its
/// two streams, its pidfd and its link twice, for each chip its arena. Measured, with a margin.
std::size_t open_files_of_job(int num_workers, int num_chips, bool tls) noexcept;

/// Counts and limits of this process.
struct OpenFiles {
  std::size_t open = 0;
  std::size_t limit = 0;       ///< the soft limit (`ulimit -n`)
  std::size_t hard_limit = 0;  ///< the maximum of the soft limit

  std::size_t left() const { return limit - open; }
};
OpenFiles count_open_files() noexcept;

/// The command that raises the limit to `wanted`, or who may raise it.
std::string how_to_allow_open_files(std::size_t wanted, const OpenFiles& now);

}  // namespace weft
