#pragma once
/// The WEFT_* variables by which a process knows that it is a worker (torch_xla's PJRT_*).

#include <optional>
#include <string>
#include <vector>

#include <weft/actors/tls.hpp>
#include <weft/spmd/mesh/mesh.hpp>

namespace weft {

/// Where a worker finds the pipe for its output. Its stdout leads nowhere until it has come to its
/// own fit(): what main() prints before, the trainer's process has printed already.
inline constexpr int kWorkerStdout = 3;

/// WEFT_JOB_ID, WEFT_JOB_TOKEN, WEFT_COORDINATOR_ADDRESS ("unix:/path" or "tls://host:port", then
/// with WEFT_TLS_CERTIFICATE, WEFT_TLS_KEY and WEFT_TLS_CA), WEFT_NUM_PROCESSES,
/// WEFT_PROCESS_INDEX, WEFT_EARLIER_FITS, WEFT_DEVICE and, to look at, WEFT_MESH_SHAPE ("4,4"),
/// WEFT_DATA_PARALLEL_SIZE, WEFT_MODEL_PARALLEL_SIZE.
struct WorkerEnvironment {
  std::string job_id;
  std::string token;
  std::string coordinator_address;
  int num_processes = 0;
  int process_index = 0;
  /// A file with how the fit() calls ended that main() made before the one this worker belongs to,
  /// a line for each: a run folder, or "!code message".
  std::string earlier_fits_path;
  /// Wanted if and only if the coordinator's address is "tls://host:port".
  TlsConfig tls{};

  /// Beside it: where worker 0's reports go before they are sent.
  std::string report_log_path() const;
};

/// Nothing where this process isn't a worker. Throws invalid_argument for a set that is incomplete
/// or malformed, naming the variable.
std::optional<WorkerEnvironment> worker_environment();

/// "NAME=value" of all variables for one worker.
std::vector<std::string> to_variables(const WorkerEnvironment& environment,
                                      const std::optional<Mesh>& mesh);

/// The path of "unix:/path". Throws invalid_argument for another kind of address.
std::string socket_path(const std::string& coordinator_address);
/// Of "tls://host:port". Throws invalid_argument for another kind of address.
TlsAddress tls_address(const std::string& coordinator_address);

}  // namespace weft
