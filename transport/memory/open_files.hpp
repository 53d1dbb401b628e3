#pragma once
/// OpenFiles: how many open files (descriptors) a job needs, and how many this process may have.

#include <cstddef>
#include <string>

namespace weft {

/// Returns how many open files the process that starts a job needs; all other processes need fewer.
/// They are two streams, a pidfd and a link (counted twice) for each worker, and an arena for each
/// chip. The number was measured, and includes a margin.
std::size_t open_files_of_job(int num_workers, int num_chips, bool tls) noexcept;

/// The open files of this process, and their limits.
struct OpenFiles {
  std::size_t open = 0;
  std::size_t limit = 0;       ///< the soft limit (`ulimit -n`)
  std::size_t hard_limit = 0;  ///< the largest soft limit that the process may set

  std::size_t left() const { return limit - open; }
};
OpenFiles count_open_files() noexcept;

/// Returns the command that raises the limit to `wanted`, or a text that says who can raise the
/// limit.
std::string how_to_allow_open_files(std::size_t wanted, const OpenFiles& now);

}  // namespace weft
