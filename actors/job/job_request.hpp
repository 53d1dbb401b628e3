#pragma once
/// JobRequest: the checked input of one run of a job.

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
  int fit_number = 1;  ///< counts the fit() calls of this process, from 1
  LoopIdentity loop;
  std::string loop_config;  ///< CBOR
  BoundLoop local;          ///< the loop, if it runs in this process
  /// If the workers run main() again, prevents a second job of this kind while the request exists;
  /// otherwise null.
  std::shared_ptr<const NamelessFit> nameless;
  std::shared_ptr<const WorkerCommand> command;  ///< null if the job has no worker processes
  std::vector<std::shared_ptr<Callback>> callbacks;
  ValidationConfig validation;
  std::function<void(int worker, bool err, std::string_view line)> output;
  std::function<void(int worker, const Metrics&)> on_worker_report;
  /// True if the run sets the WEFT_* variables of this process, because the loop runs on one of its
  /// threads.
  bool sets_variables = false;
  bool handles_signals = true;
  bool chains_signals = true;
  bool logs_to_console = true;  ///< if WEFT_LOG isn't set
};

}  // namespace weft
