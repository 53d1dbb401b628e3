#pragma once
/// The WEFT_* variables by which a process knows that it is a worker (torch_xla's PJRT_*).

#include <optional>
#include <string>
#include <vector>

#include <weft/mesh.hpp>
#include <weft/tls.hpp>

namespace weft {

/// Where a worker finds the pipe for its output. Its stdout leads nowhere until it has come to its
/// own fit(): what main() prints before, the trainer's process has printed already.
inline constexpr int kWorkerStdout = 3;

/// WEFT_JOB_ID, WEFT_JOB_TOKEN, WEFT_JOB_FOLDER, WEFT_LOOP where the loop has a name
/// (with WEFT_LOOP_OBJECT and WEFT_LOOP_BUILD where it is in a shared library),
/// WEFT_COORDINATOR_ADDRESS ("unix:/path" or "tls://host:port", then with WEFT_TLS_CERTIFICATE,
/// WEFT_TLS_KEY and WEFT_TLS_CA), WEFT_NUM_PROCESSES, WEFT_PROCESS_INDEX, WEFT_DEVICE and, to look
/// at, WEFT_MESH_SHAPE ("4,4"), WEFT_DATA_PARALLEL_SIZE, WEFT_MODEL_PARALLEL_SIZE. A process is a
/// worker where it has a token.
struct WorkerEnvironment {
  std::string job_id;
  std::string token;
  std::string coordinator_address;
  int num_processes = 0;
  int process_index = 0;
  std::string job_folder;     ///< the job's control folder
  std::string loop{};         ///< its name; "": main() runs again, up to its fit()
  std::string loop_object{};  ///< of a loop in a library, for weft-worker: the file, and its build
  std::string loop_build{};
  /// Wanted if and only if the coordinator's address is "tls://host:port".
  TlsConfig tls{};

  /// Which fit() call of main() the job is, and how those before it ended (nameless_fit.hpp).
  std::string fits_path() const { return job_folder + "/fits"; }
  /// Where worker 0's reports go before they are sent.
  std::string report_log_path() const { return job_folder + "/control.reports"; }
};

/// Nothing where this process isn't a worker. Throws invalid_argument for a set that is incomplete
/// or malformed, naming the variable.
std::optional<WorkerEnvironment> worker_environment();

/// Empties, in place, the variables that make a process a worker: those that it starts are none.
/// Other threads may read the environment meanwhile.
void forget_worker_environment() noexcept;

/// "NAME=value" of all variables for one worker.
std::vector<std::string> to_variables(const WorkerEnvironment& environment,
                                      const std::optional<Mesh>& mesh);

/// The path of "unix:/path". Throws invalid_argument for another kind of address.
std::string socket_path(const std::string& coordinator_address);
/// Of "tls://host:port". Throws invalid_argument for another kind of address.
TlsAddress tls_address(const std::string& coordinator_address);

}  // namespace weft
