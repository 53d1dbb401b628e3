#pragma once
/// WorkerActors: the actors that run in a job's worker process, beside its loop.

#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>

#include "actors/user/actor_process.hpp"

namespace weft {

/// The part of an actor system in a worker's process. It ends when this object is destroyed, or
/// earlier when the system ends. At its end, its actors are destroyed.
class WorkerActors {
 public:
  /// `job` is JobInfo::id. Throws not_found if the system has ended, version if it has another
  /// version, and no_space.
  WorkerActors(const std::string& system, std::string_view job, int worker);
  ~WorkerActors();
  WorkerActors(const WorkerActors&) = delete;
  WorkerActors& operator=(const WorkerActors&) = delete;

 private:
  std::counting_semaphore<2> must_end_{0};
  std::shared_ptr<detail::ActorProcess> process_;
  std::jthread thread_;  ///< destroys the actors at the end
};

}  // namespace weft
