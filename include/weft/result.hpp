#pragma once
/// How a job started and how it ended.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/config.hpp>
#include <weft/error.hpp>
#include <weft/mesh.hpp>

namespace weft {

struct JobInfo {
  std::string id;
  std::string name;
  std::string path;  ///< the run's folder
  int num_workers = 0;
  std::optional<Mesh> mesh;
};

/// The first cause of a failed run, or the cause of a loss that a run survived.
struct Failure {
  Errc code = Errc::cancelled;
  std::string message{};  ///< the whole of it in one sentence
  int worker = -1;        ///< -1: no single worker
  int pid = 0;
  int signal = 0;  ///< the signal that ended the worker; 0: none
  int exit_code = 0;
  std::uint64_t step = 0;
  std::string collective{};  ///< the worker was in: "all_reduce #812 'fc1.weight.grad'", or ""
};

/// Why a run ended.
enum class EndedBy : std::uint8_t {
  loops,     ///< all loops returned
  failure,   ///< of a worker, or of what the job needs
  stop,      ///< Job::stop(), or the stop token of fit()
  cancel,    ///< Job::cancel(), or the destructor of its Job
  signal,    ///< SIGINT, SIGTERM or SIGHUP, to this program or to a worker
  callback,  ///< a callback, which threw
};
std::string_view to_string(EndedBy ended_by) noexcept;

/// The maximum number of reports in a Result; progress.csv in the run's folder has all of them.
inline constexpr std::size_t kHistoryMax = 10'000;

struct Result {
  Metrics metrics = Metrics::object();   ///< the last report of worker 0
  std::vector<Metrics> metrics_history;  ///< worker 0's last reports in order, up to kHistoryMax
  std::optional<Checkpoint> checkpoint;  ///< the last one reported
  std::optional<Failure> error;
  /// The losses that the run survived, in order, one entry per worker (FailureConfig).
  std::vector<Failure> failures;
  std::string path;
  JobInfo job;
  EndedBy ended_by = EndedBy::loops;
  int signal = 0;  ///< received by this program while the job ran, even if the job ignored it
  std::vector<Metrics> worker_metrics{};  ///< the last report of each worker; null: it made none
  std::string config_digest{};            ///< XXH3 of loop_config

  bool ok() const { return !error; }
  /// The job was told to end before its loops were done; this is no failure.
  bool cancelled() const { return error && error->code == Errc::cancelled; }
};

}  // namespace weft
