#pragma once
/// JobSpec: the checked description of a job that fit() runs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <weft/job/config.hpp>
#include <weft/job/result.hpp>
#include <weft/job/tls.hpp>
#include <weft/sharding/mesh.hpp>

#include "actors/process/device_choice.hpp"
#include "actors/protocol/host_place.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/supervision/recovery.hpp"

namespace weft {

/// The checkpoint or step at which a job begins; see RunConfig::resume.
struct ResumeFrom {
  enum class Kind : std::uint8_t { never, newest, path };
  Kind kind = Kind::never;
  std::string path{};  ///< absolute; only for `path`
};

/// The description of a job. Its options have been checked and don't contradict each other.
struct JobSpec {
  std::string name;
  std::string storage_path;  ///< absolute
  int num_workers = 0;       ///< 0: the worker is this process
  int chips_per_worker = 0;
  int cpus_per_worker = 0;  ///< cores that a worker's own libraries may use; 0: unspecified
  DeviceChoice device;
  std::optional<Mesh> mesh;  ///< absent for backend "none"
  double timeout_s = 0;
  std::uint64_t seed = 0;
  CheckpointConfig checkpoint;  ///< `path` is absolute, or "" for the run's folder
  ResumeFrom resume;
  bool resume_partial = false;
  RecoveryPolicy recovery;
  bool keeps_state = true;    ///< two versions are kept: to continue, compare or rescue
  double grace_s = 0;         ///< 0: a preempted job is cancelled
  double hang_timeout_s = 0;  ///< 0: a hang doesn't count as a loss
  /// The seconds without progress after which a hang is reported. If absent, the value follows from
  /// the durations of the steps. 0 turns warnings off.
  std::optional<double> hang_warning_s{};
  std::uint64_t check_replicas_every = 0;  ///< in steps; 0: never
  double host_timeout_s = 5;               ///< how long a host may be silent
  double keep_for_rescue_s = 0;            ///< 0: the memory isn't kept
  bool is_eager = false;                   ///< each op runs when it is recorded
  bool ends_on_nan = false;                ///< the job ends if a report contains NaN
  TlsConfig tls;                           ///< a Unix socket is used if TLS isn't wanted
  HostPlace place{};                       ///< this process's place among the job's hosts
  std::string network{};                   ///< BackendConfig::network
  std::string actors{};  ///< the id of the actor system that the workers join; "": none

  /// Returns the number of workers that join, at least 1.
  int num_joins() const { return num_workers == 0 ? 1 : num_workers; }
  int num_chips() const { return num_joins() * chips_per_worker; }
  int workers_per_host() const { return num_joins() / place.count; }
  int chips_per_host() const { return num_chips() / place.count; }
  /// Returns the first worker of this host.
  int first_worker() const { return place.index * workers_per_host(); }
  std::chrono::milliseconds timeout() const { return milliseconds(timeout_s); }
  /// Returns whether the state of the job's last step can be recovered after its processes have
  /// died.
  bool is_rescuable() const {
    return mesh && keeps_state && (recovery.recovers() || keep_for_rescue_s > 0);
  }
  bool hangs_are_losses() const { return hang_timeout_s > 0; }
  std::chrono::milliseconds hang_timeout() const { return milliseconds(hang_timeout_s); }
  std::chrono::milliseconds host_timeout() const { return milliseconds(host_timeout_s); }
  /// Returns how long the trainer may send nothing to an agent. The time is shorter than
  /// host_timeout(), so that the agent has killed its workers before the trainer counts the host as
  /// lost.
  std::chrono::milliseconds agent_patience() const { return milliseconds(0.8 * host_timeout_s); }
  std::chrono::milliseconds grace() const { return milliseconds(grace_s); }

 private:
  static std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
  }
};

/// Logs the resources on which the job runs. Warns if they differ from the requested ones, or if
/// the jobs of this program, with `crowd` chips in total, share the cores.
void say_resources(const JobSpec& spec, int crowd, int usable_cores, std::size_t arena_bytes);

JobInfo info_of(const JobSpec& spec, const std::string& id, const std::string& run_dir);

/// Returns the data about the job that its workers need.
Assignment assignment_of(const JobSpec& spec, const std::string& run_dir);

}  // namespace weft
