#pragma once
/// Open files (descriptors) of a process: how many a job needs, and how many there may be.

#include <cstddef>
#include <string>

namespace weft {

/// What a job holds open at once in the process that starts it, which has the most: for each worker
/// its two streams, its process and its link twice, for each chip its arena. Measured, and some to
/// spare.
std::size_t open_files_of_job(int num_workers, int num_chips, bool tls) noexcept;

/// Of this process.
struct OpenFiles {
  std::size_t open = 0;
  std::size_t limit = 0;       ///< what `ulimit -n` says
  std::size_t hard_limit = 0;  ///< what it may be set to

  std::size_t left() const { return limit - open; }
};
OpenFiles count_open_files() noexcept;

/// The command that allows `wanted`, or says who may.
std::string how_to_allow_open_files(std::size_t wanted, const OpenFiles& now);

}  // namespace weft
