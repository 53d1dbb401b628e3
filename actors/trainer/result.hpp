#pragma once
/// How a job started and how it ended.

#include <optional>
#include <string>
#include <vector>

#include <weft/actors/trainer/config.hpp>
#include <weft/spmd/error.hpp>
#include <weft/spmd/mesh/mesh.hpp>

namespace weft {

struct JobInfo {
  std::string id;
  std::string name;
  std::string path;  ///< the run's folder
  int num_workers = 0;
  std::optional<Mesh> mesh;
};

/// The first cause of a failed run, or of a loss that a run has survived.
struct Failure {
  Errc code = Errc::cancelled;
  std::string message{};  ///< the whole of it in one sentence
  int worker = -1;        ///< -1: no single worker
  int pid = 0;
  int signal = 0;  ///< that ended the worker, 0 otherwise
  int exit_code = 0;
  std::uint64_t step = 0;
  std::string collective{};  ///< that the worker was in: "all_reduce #812 'fc1.weight.grad'", or ""
};

struct Result {
  Metrics metrics = Metrics::object();   ///< of the last report of worker 0
  std::vector<Metrics> metrics_history;  ///< worker 0's reports in order
  std::optional<Checkpoint> checkpoint;  ///< the last one reported
  std::optional<Failure> error;
  std::vector<Failure> failures;  ///< that the run has survived, in order (FailureConfig)
  std::string path;
  JobInfo job;

  bool ok() const { return !error; }
};

}  // namespace weft
