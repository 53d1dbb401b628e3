#include "actors/keeper/job_tie.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <weft/tensor/error.hpp>

namespace weft {

JobTie tie_to(const Job* job) {
  if (job == nullptr) return {};
  const std::string id = job->info().id;
  const int end_fd = id.empty() ? -1 : ::fcntl(job->fd(), F_DUPFD_CLOEXEC, 0);
  if (end_fd < 0) {
    fail(id.empty() ? Errc::invalid_argument : Errc::io,
         "SpawnOptions::lives_with: {}; expected a Job that Trainer::start() returned",
         id.empty() ? "the Job is empty" : std::strerror(errno));
  }
  return {.id = id, .end_fd = {new int(end_fd), [](const int* fd) {
                                 ::close(*fd);
                                 delete fd;
                               }}};
}

}  // namespace weft
