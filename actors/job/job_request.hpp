#pragma once
/// JobRequest: what a run of a job needs, already checked.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/launch/worker_command.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/trainer/job_spec.hpp"
#include "actors/worker/worker.hpp"

namespace weft {

class NamelessFit;

struct JobRequest {
  JobSpec spec;
  int fit_number = 1;  ///< number of this fit() call in the process, from 1
  LoopIdentity loop;
  std::string loop_config;  ///< in CBOR
  BoundLoop local;          ///< the loop, if it runs in this process
  /// While the request exists, prevents a second job whose workers run main() again. Null if the
  /// workers of this job don't run main() again.
  std::shared_ptr<const NamelessFit> nameless;
  std::shared_ptr<const WorkerCommand> command;  ///< null if the job has no worker processes
  std::vector<std::shared_ptr<Callback>> callbacks;
  ValidationConfig validation;
  std::function<void(int worker, bool err, std::string_view line)> output;
  std::function<void(int worker, const Metrics&)> on_worker_report;
  /// True if the run sets the WEFT_* variables of this process, because the job's loop runs on a
  /// thread of this process.
  bool sets_variables = false;
  bool handles_signals = true;
  bool chains_signals = true;
  bool logs_to_console = true;  ///< applies if WEFT_LOG isn't set
};

}  // namespace weft
