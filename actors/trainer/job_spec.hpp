#pragma once
/// What fit() runs.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <weft/job/config.hpp>
#include <weft/job/result.hpp>
#include <weft/job/tls.hpp>
#include <weft/sharding/mesh.hpp>

#include "actors/process/device_choice.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/supervision/recovery.hpp"

namespace weft {

/// Where a job begins: see RunConfig::resume.
struct ResumeFrom {
  enum class Kind : std::uint8_t { never, newest, path };
  Kind kind = Kind::never;
  std::string path{};  ///< absolute
};

/// A job, every contradiction ruled out.
struct JobSpec {
  std::string name;
  std::string storage_path;  ///< absolute
  int num_workers = 0;       ///< 0: the worker is this process
  int chips_per_worker = 0;
  int cpus_per_worker = 0;  ///< cores that a worker's own libraries may use; 0: not said
  DeviceChoice device;
  std::optional<Mesh> mesh;  ///< nothing for backend "none"
  double timeout_s = 0;
  std::uint64_t seed = 0;
  CheckpointConfig checkpoint;  ///< `path` is absolute, or "": in the run's folder
  ResumeFrom resume;
  bool resume_partial = false;
  RecoveryPolicy recovery;
  bool keeps_state = true;    ///< two versions: to continue from, to compare, to rescue
  double grace_s = 0;         ///< 0: a preempted job is cancelled
  double hang_timeout_s = 0;  ///< 0: hangs are no losses
  std::optional<double> hang_warning_s{};  ///< absent: as the job's steps suggest; 0: none
  std::uint64_t check_replicas_every = 0;  ///< steps; 0: never
  double keep_for_rescue_s = 0;            ///< 0: not
  bool is_eager = false;                   ///< each op runs when it is recorded
  bool ends_on_nan = false;                ///< of a report
  TlsConfig tls;                           ///< not wanted: a Unix socket

  /// Workers that join: at least one.
  int num_joins() const { return num_workers == 0 ? 1 : num_workers; }
  int num_chips() const { return num_joins() * chips_per_worker; }
  std::chrono::milliseconds timeout() const { return milliseconds(timeout_s); }
  /// Whether the state of its last step can be had once its processes are dead.
  bool is_rescuable() const {
    return mesh && keeps_state && (recovery.recovers() || keep_for_rescue_s > 0);
  }
  bool hangs_are_losses() const { return hang_timeout_s > 0; }
  std::chrono::milliseconds hang_timeout() const { return milliseconds(hang_timeout_s); }
  std::chrono::milliseconds grace() const { return milliseconds(grace_s); }

 private:
  static std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
  }
};

/// Logs what the job runs on, with warnings where that is not what was asked for, or where jobs of
/// this program with a `crowd` of chips share its cores.
void say_resources(const JobSpec& spec, int crowd, int usable_cores);

JobInfo info_of(const JobSpec& spec, const std::string& id, const std::string& run_dir);

/// What a worker of the job must know.
Assignment assignment_of(const JobSpec& spec, const std::string& run_dir);

}  // namespace weft
