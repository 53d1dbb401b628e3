#include "actors/keeper/job_tie.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <weft/job/job.hpp>
#include <weft/tensor/error.hpp>

#include "actors/job/job_control.hpp"

namespace weft {

JobTie tie_to(const SpawnOptions& options, std::string_view mesh, std::string_view system) {
  const Job* const beside = options.place.beside;
  const Job* const job = beside != nullptr ? beside : options.lives_with;
  if (job == nullptr) return {};
  const char* const field = beside != nullptr ? "beside_loops(job)" : "SpawnOptions::lives_with";
  const JobInfo info = job->info();
  if (info.id.empty()) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": {}: the Job is empty; expected a Job that Trainer::start() returned", mesh,
         field);
  }
  const int end_fd = ::fcntl(job->fd(), F_DUPFD_CLOEXEC, 0);
  if (end_fd < 0) {
    fail(Errc::io, "mesh \"{}\": the descriptor of job {} can't be duplicated: {}", mesh, info.id,
         std::strerror(errno));
  }
  JobTie tie{
      .id = info.id, .workers = info.num_workers, .end_fd = {new int(end_fd), [](const int* fd) {
                                                               ::close(*fd);
                                                               delete fd;
                                                             }}};
  if (beside == nullptr) return tie;
  if (options.lives_with != nullptr && options.lives_with->info().id != info.id) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": it is placed beside the loops of job {} and lives with job {}: expected "
         "the same job; leave SpawnOptions::lives_with out",
         mesh, info.id, options.lives_with->info().id);
  }
  if (info.num_workers > 0 && JobControl::actors_of(info.id) != system) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": beside_loops(job): the workers of job {} don't join this actor system; "
         "start the job with TrainerOptions{{.actors = &system}}",
         mesh, info.id);
  }
  return tie;
}

}  // namespace weft
