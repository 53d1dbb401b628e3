#pragma once
/// Lets a program call fit() several times over hosts. The other hosts make the same calls as host
/// 0, and take part in one job after the other.

#include <string>

#include <weft/job/result.hpp>

#include "actors/agent/agent_run.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Reserves the other hosts for a job of host 0's process during the object's lifetime. Does
/// nothing for a job on one host.
class HostsTaken {
 public:
  /// Starts to listen for the other hosts, and sets the address in `spec.place`. `site` is the
  /// source line of the fit() call. Throws unavailable if another job has the hosts, and io if host
  /// 0 can't listen.
  HostsTaken(JobSpec& spec, const std::string& site);
  ~HostsTaken();
  HostsTaken(const HostsTaken&) = delete;
  HostsTaken& operator=(const HostsTaken&) = delete;

  /// Keeps the hosts reserved until the process ends, because the job may outlive this object, and
  /// its result isn't noted for other hosts.
  void keep() { takes_ = false; }

 private:
  bool takes_;
};

/// Prints again what main() prints to stdout, until the next fit() call ends. Call it first in each
/// call that begins a job on a host other than host 0.
void end_between_jobs();

/// Makes a fit() call on a host other than host 0. If host 0's process then begins another job,
/// returns or throws what the same call returned or threw on host 0. From then until the next call,
/// drops what main() prints to stdout. If host 0's process begins no other job, ends this process.
/// Throws the errors of run_agent(), and those of Result::load() if the hosts don't share the run
/// folder.
Result fit_as_agent(const AgentJob& job, const std::string& site);

}  // namespace weft
