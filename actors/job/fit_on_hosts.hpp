#pragma once
/// Lets a program call fit() several times over hosts: the other hosts take part in one job after
/// the other, and make the same calls as host 0.

#include <string>

#include <weft/job/result.hpp>

#include "actors/agent/agent_run.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Takes the other hosts for a job of host 0's process, as long as the object lives. Does nothing
/// for a job on one host.
class HostsTaken {
 public:
  /// Listens for the other hosts, and sets where, in the job's place. `site` is the source line of
  /// the call. Throws unavailable if another job has the hosts, and io if nothing can listen.
  HostsTaken(JobSpec& spec, const std::string& site);
  ~HostsTaken();
  HostsTaken(const HostsTaken&) = delete;
  HostsTaken& operator=(const HostsTaken&) = delete;

  /// The hosts stay taken until the process ends: the job may outlive this object, and its result
  /// isn't noted for other hosts.
  void keep() { takes_ = false; }

 private:
  bool takes_;
};

/// Makes a fit() call on another host than 0. If host 0's process then begins another job, returns
/// or throws what the call has returned or thrown there, and from then on drops what main() prints
/// to stdout, until the next call. Otherwise ends the process. Throws the errors of run_agent(),
/// and those of Result::load() if the hosts don't share the run folder.
Result fit_as_agent(const AgentJob& job, const std::string& site);

}  // namespace weft
