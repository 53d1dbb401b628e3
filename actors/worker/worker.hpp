#pragma once
/// Runs a worker: it joins, builds its chips, runs the loop and reports how the loop ended.

#include <functional>
#include <string>

#include <weft/job/config.hpp>
#include <weft/train/train_context.hpp>

#include "actors/link/environment.hpp"
#include "actors/runtime/worker_link.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// The user's loop with its config bound.
using BoundLoop = std::function<Metrics(TrainContext&)>;

/// The data that a worker has before it joins.
struct WorkerIdentity {
  int worker = 0;
  std::string job_id;
  std::string token;
  std::string report_log{};  ///< path of the ReportLog's file; "" if no log is needed
  HostPlace place{};         ///< of the worker's host
};

/// Returns the loop to run, after the trainer has said which one. If the function throws, the error
/// is reported to the trainer and no loop runs.
using ResolveLoop = std::function<BoundLoop(const Assignment&)>;

/// Returns the recorder to which a worker's link writes.
LinkRecorder link_recorder(const Board& board, BlackBoxWriter& box, int worker);

/// Joins by `link`, runs the loop and tells the trainer how the loop ended. Returns true if it
/// succeeded. `stages` are the times of the start-up until now. Throws nothing: errors are reported
/// to the trainer.
bool run_worker(WorkerLink& link, const WorkerIdentity& identity, JobMemory& memory, Board& board,
                BlackBoxWriter& box, const ResolveLoop& resolve,
                std::vector<BootstrapStage> stages);

/// Runs a worker process from its start: calls run_worker() with a connection and memory mappings
/// of its own. Returns the exit code of the process.
int run_worker_process(const WorkerEnvironment& environment, const ResolveLoop& resolve);

}  // namespace weft
