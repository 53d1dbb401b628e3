#pragma once
/// JobRequest: all that one run of a job needs, checked.

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
  int fit_number = 1;  ///< of those that this process has asked for
  LoopIdentity loop;
  std::string loop_config;  ///< CBOR
  BoundLoop local;          ///< the loop, where it runs in this process
  /// Held while the job runs, where main() runs again in its workers; else null.
  std::shared_ptr<const NamelessFit> nameless;
  std::shared_ptr<const WorkerCommand> command;  ///< null where there are no processes
  std::vector<std::shared_ptr<Callback>> callbacks;
  ValidationConfig validation;
  std::function<void(int worker, bool err, std::string_view line)> output;
  std::function<void(int worker, const Metrics&)> on_worker_report;
  bool sets_variables = false;  ///< WEFT_* of this process, whose thread the loop is
  bool handles_signals = true;
  bool chains_signals = true;
  bool logs_to_console = true;  ///< where WEFT_LOG isn't set
};

}  // namespace weft
