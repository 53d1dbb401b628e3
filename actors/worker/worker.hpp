#pragma once
/// Runs a worker: joins the job, builds the worker's chips, runs the loop, and reports its end.

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

/// The facts that a worker has before it joins.
struct WorkerIdentity {
  int worker = 0;
  std::string job_id;
  std::string token;
  std::string report_log{};  ///< path of the ReportLog's file; "": no log is needed
  HostPlace place{};         ///< the place of the worker's host
};

/// Returns the loop to run, which the trainer's Assignment names. If it throws, the error is
/// reported to the trainer and no loop runs.
using ResolveLoop = std::function<BoundLoop(const Assignment&)>;

/// Returns the recorder for a worker's link.
LinkRecorder link_recorder(const Board& board, BlackBoxWriter& box, int worker);

/// Joins the job by `link`, runs the loop and tells the trainer how the loop ended. Returns whether
/// the loop succeeded. `stages` are the times of the start-up until now. Throws nothing, because
/// errors are reported to the trainer.
bool run_worker(WorkerLink& link, const WorkerIdentity& identity, JobMemory& memory, Board& board,
                BlackBoxWriter& box, const ResolveLoop& resolve,
                std::vector<BootstrapStage> stages);

/// Runs a worker process from its start: calls run_worker() with its own connection and memory
/// mappings. Returns the exit code of the process.
int run_worker_process(const WorkerEnvironment& environment, const ResolveLoop& resolve);

}  // namespace weft
