#pragma once
/// Reads and makes the WEFT_* variables that make a process a worker (they correspond to
/// torch_xla's PJRT_*).

#include <optional>
#include <string>
#include <vector>

#include <weft/job/tls.hpp>
#include <weft/sharding/device.hpp>
#include <weft/sharding/mesh.hpp>

#include "actors/protocol/host_place.hpp"

namespace weft {

/// The descriptor of a worker's output pipe. Until the worker reaches its own fit() call, its
/// stdout is /dev/null, because the trainer's process has already printed the earlier output of
/// main().
inline constexpr int kWorkerStdout = 3;
/// The descriptor that becomes the worker's stdin at its fit() call. It is the stdin of the
/// trainer's process for worker 0 under `weft launch`, else /dev/null.
inline constexpr int kWorkerStdin = 4;

/// The values of WEFT_JOB_ID, WEFT_MEMORY_ID, WEFT_JOB_TOKEN, WEFT_JOB_FOLDER,
/// WEFT_COORDINATOR_ADDRESS, WEFT_NUM_PROCESSES, WEFT_PROCESS_INDEX and WEFT_DEVICE. WEFT_LOOP is
/// set if the loop has a name, together with WEFT_LOOP_OBJECT and WEFT_LOOP_BUILD if the loop is in
/// a shared library. The address is "unix:/path" or "tls://host:port". If it is "tls://host:port",
/// the job has several hosts, or WEFT_TLS_CERTIFICATE, WEFT_TLS_KEY and WEFT_TLS_CA are set too.
/// Workers of several hosts also get the variables of worker_place_variables().
/// Three variables are only for information: WEFT_MESH_SHAPE ("4,4"), WEFT_DATA_PARALLEL_SIZE,
/// WEFT_MODEL_PARALLEL_SIZE. A process with a token is a worker.
struct WorkerEnvironment {
  std::string job_id;
  std::string token;
  std::string coordinator_address;
  int num_processes = 0;
  int process_index = 0;
  std::string job_folder;     ///< the job's control folder
  std::string memory_id{};    ///< identifies the job's memory on this host; "": `job_id` does
  std::string loop{};         ///< the loop's name; "": main() runs again, up to its fit()
  std::string loop_object{};  ///< path of the library that contains the loop, for weft-worker
  std::string loop_build{};
  std::string actors{};  ///< WEFT_ACTOR_SYSTEM: the actor system that the worker joins; "": none
  int cpus = 0;          ///< OMP_NUM_THREADS, unless the trainer's process has set it; 0: not set
  /// Set if the coordinator's address is "tls://host:port" and the job has one host.
  TlsConfig tls{};
  HostPlace place{};  ///< the place of the worker's host

  const std::string& memory() const { return memory_id.empty() ? job_id : memory_id; }
  /// Returns the path of a file for main(): it says which fit() call is the job, and has the
  /// results of earlier calls (nameless_fit.hpp).
  std::string fits_path() const { return job_folder + "/fits"; }
  /// Returns the path of the file with the secret of a job of several hosts.
  std::string secret_path() const { return job_folder + "/secret"; }
  /// Returns the path of the file that keeps worker 0's reports until they are sent.
  std::string report_log_path() const { return job_folder + "/control.reports"; }
};

/// Returns the worker environment of this process; std::nullopt if the process isn't a worker.
/// Throws invalid_argument, naming a variable, for an incomplete or malformed set of variables.
std::optional<WorkerEnvironment> worker_environment();

/// Empties, in place, the variables that make this process a worker, so that its children aren't
/// workers. Other threads may read the environment meanwhile.
void forget_worker_environment() noexcept;

/// The place of a loop in its job.
struct WorkerPlace {
  std::string job_id;
  int num_processes = 1;
  int process_index = 0;
  DeviceKind device = DeviceKind::cpu;
};
/// Returns the place as "NAME=value": WEFT_JOB_ID, WEFT_NUM_PROCESSES, WEFT_PROCESS_INDEX,
/// WEFT_DEVICE, and the mesh's sizes if there is a mesh.
std::vector<std::string> to_variables(const WorkerPlace& place, const std::optional<Mesh>& mesh);
/// Sets the variables in this process, for a loop that runs on one of its threads. As for setenv(),
/// no other thread may read the environment meanwhile. Doesn't touch variables that already have
/// their values.
void set_variables(const std::vector<std::string>& variables);

/// Returns all variables for one worker process.
std::vector<std::string> to_variables(const WorkerEnvironment& environment, DeviceKind device,
                                      const std::optional<Mesh>& mesh);

/// Returns the path in "unix:/path". Throws invalid_argument for other kinds of address.
std::string socket_path(const std::string& coordinator_address);
/// Returns the address in "tls://host:port". Throws invalid_argument for other kinds of address.
TlsAddress tls_address(const std::string& coordinator_address);

}  // namespace weft
