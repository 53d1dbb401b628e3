#pragma once
/// JobEnd: the end of a job, from result.json in its run folder.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/board/actor_row.hpp"

namespace weft {

/// The failure of a job, or the loss of a worker that the job survived; see Failure in
/// <weft/job.hpp>.
struct JobFailure {
  std::string code{};  ///< such as "peer_lost"
  std::string message{};
  int worker = -1;
  int pid = 0;
  int signal = 0;
  int exit_code = 0;
  std::uint64_t step = 0;
  std::string collective{};
  std::string thrown_at{};  ///< "" in files of older versions
};

struct JobEnd {
  std::string job{};
  std::string name{};
  std::string ended_by{};
  int num_workers = 0;
  std::optional<JobFailure> error{};  ///< absent if the job ended well
  std::vector<JobFailure> losses{};   ///< losses of workers that the job survived
  std::string checkpoint{};           ///< the last complete checkpoint; "": none
  std::uint64_t step = 0;             ///< number of ended steps

  JobStatus status() const {
    if (!error) return JobStatus::succeeded;
    return error->code == "cancelled" ? JobStatus::cancelled : JobStatus::failed;
  }
};

/// Returns the end of the job; nothing if there is no result.json. Throws corrupt with the file's
/// path.
std::optional<JobEnd> read_job_end(const std::string& run_dir);

}  // namespace weft
