#pragma once
/// How a job ended, as result.json in its run folder says it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/board/actor_row.hpp"

namespace weft {

/// One failure or loss; see Failure of <weft/result.hpp>.
struct JobFailure {
  std::string code{};  ///< "peer_lost"
  std::string message{};
  int worker = -1;
  int pid = 0;
  int signal = 0;
  int exit_code = 0;
  std::uint64_t step = 0;
  std::string collective{};
  std::string thrown_at{};  ///< empty in files of older versions
};

struct JobEnd {
  std::string job{};
  std::string name{};
  std::string ended_by{};
  int num_workers = 0;
  std::optional<JobFailure> error{};  ///< absent: it ended well
  std::vector<JobFailure> losses{};   ///< that it survived
  std::string checkpoint{};           ///< the last that is whole; empty: none
  std::uint64_t step = 0;             ///< the number of steps that had ended

  JobStatus status() const {
    if (!error) return JobStatus::succeeded;
    return error->code == "cancelled" ? JobStatus::cancelled : JobStatus::failed;
  }
};

/// Absent where there is no such file. Throws corrupt, naming the file.
std::optional<JobEnd> read_job_end(const std::string& run_dir);

}  // namespace weft
