#pragma once
/// Open files (descriptors) of a process: how many a job needs, and the limits.

#include <cstddef>
#include <string>

namespace weft {

/// Returns the number of files that the process that starts a job has open, which has the most.
/// Each worker takes its two streams, its pidfd and its link twice; each chip takes its arena. The
/// number is measured, with a margin.
std::size_t open_files_of_job(int num_workers, int num_chips, bool tls) noexcept;

/// The open files of this process, and their limits.
struct OpenFiles {
  std::size_t open = 0;
  std::size_t limit = 0;       ///< the soft limit (`ulimit -n`)
  std::size_t hard_limit = 0;  ///< the maximum of the soft limit

  std::size_t left() const { return limit - open; }
};
OpenFiles count_open_files() noexcept;

/// Returns the command that raises the limit to `wanted`, or a text that says who may raise it.
std::string how_to_allow_open_files(std::size_t wanted, const OpenFiles& now);

}  // namespace weft
