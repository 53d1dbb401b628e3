#pragma once
/// WorkerActors: the actors that run in a job's worker process, beside its loop.

#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>

#include "actors/user/actor_process.hpp"

namespace weft {

/// The worker's part in an actor system. It ends when this object is destroyed, or earlier with the
/// system; the actors are then destroyed.
class WorkerActors {
 public:
  /// `job` is JobInfo::id. Throws not_found if the system has ended, version, no_space.
  WorkerActors(const std::string& system, std::string_view job, int worker);
  ~WorkerActors();
  WorkerActors(const WorkerActors&) = delete;
  WorkerActors& operator=(const WorkerActors&) = delete;

 private:
  std::counting_semaphore<2> must_end_{0};
  std::shared_ptr<detail::ActorProcess> process_;
  std::jthread thread_;  ///< ends the actors
};

}  // namespace weft
