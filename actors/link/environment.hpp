#pragma once
/// The WEFT_* variables that make a process a worker (torch_xla's PJRT_*).

#include <optional>
#include <string>
#include <vector>

#include <weft/device.hpp>
#include <weft/mesh.hpp>
#include <weft/tls.hpp>

namespace weft {

/// The descriptor of a worker's output pipe. A worker's stdout is /dev/null until its own fit()
/// call: the trainer's process has already printed the earlier output of main().
inline constexpr int kWorkerStdout = 3;
/// The descriptor of what its stdin becomes then: that of the trainer's process for worker 0 under
/// `weft launch`, else /dev/null.
inline constexpr int kWorkerStdin = 4;

/// WEFT_JOB_ID, WEFT_JOB_TOKEN, WEFT_JOB_FOLDER, WEFT_LOOP if the loop has a name (with
/// WEFT_LOOP_OBJECT and WEFT_LOOP_BUILD if it is in a shared library), WEFT_COORDINATOR_ADDRESS
/// ("unix:/path" or "tls://host:port", then with WEFT_TLS_CERTIFICATE, WEFT_TLS_KEY and
/// WEFT_TLS_CA), WEFT_NUM_PROCESSES, WEFT_PROCESS_INDEX, WEFT_DEVICE. For information only:
/// WEFT_MESH_SHAPE ("4,4"), WEFT_DATA_PARALLEL_SIZE, WEFT_MODEL_PARALLEL_SIZE. A process with a
/// token is a worker.
struct WorkerEnvironment {
  std::string job_id;
  std::string token;
  std::string coordinator_address;
  int num_processes = 0;
  int process_index = 0;
  std::string job_folder;     ///< the job's control folder
  std::string loop{};         ///< the loop's name; "": main() runs again, up to its fit()
  std::string loop_object{};  ///< file of the library that has the loop; for weft-worker
  std::string loop_build{};
  int cpus = 0;  ///< OMP_NUM_THREADS, unless the trainer's process has one; 0: not said
  /// Set if and only if the coordinator's address is "tls://host:port".
  TlsConfig tls{};

  /// Which fit() call of main() the job is, and the results of earlier calls (nameless_fit.hpp).
  std::string fits_path() const { return job_folder + "/fits"; }
  /// The file for worker 0's reports until they are sent.
  std::string report_log_path() const { return job_folder + "/control.reports"; }
};

/// Absent if this process isn't a worker. Throws invalid_argument for an incomplete or malformed
/// set; the message names the variable.
std::optional<WorkerEnvironment> worker_environment();

/// Empties in place the variables that make a process a worker, so that its children aren't
/// workers. Other threads may read the environment meanwhile.
void forget_worker_environment() noexcept;

/// Those that only tell a loop its place, as "NAME=value": WEFT_JOB_ID, WEFT_NUM_PROCESSES,
/// WEFT_PROCESS_INDEX, WEFT_DEVICE, and with a mesh its sizes.
struct WorkerPlace {
  std::string job_id;
  int num_processes = 1;
  int process_index = 0;
  DeviceKind device = DeviceKind::cpu;
};
std::vector<std::string> to_variables(const WorkerPlace& place, const std::optional<Mesh>& mesh);
/// Sets them in this process, whose loop is a thread. As setenv() does, it needs that no other
/// thread reads the environment meanwhile; what has its value already isn't touched.
void set_variables(const std::vector<std::string>& variables);

/// All variables for one worker process.
std::vector<std::string> to_variables(const WorkerEnvironment& environment, DeviceKind device,
                                      const std::optional<Mesh>& mesh);

/// The path of "unix:/path". Throws invalid_argument for another kind of address.
std::string socket_path(const std::string& coordinator_address);
/// The address of "tls://host:port". Throws invalid_argument for another kind of address.
TlsAddress tls_address(const std::string& coordinator_address);

}  // namespace weft
