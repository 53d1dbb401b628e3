#pragma once
/// A worker: joins, builds its chips, runs the loop, reports its end.

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

/// What a worker knows before it joins.
struct WorkerIdentity {
  int worker = 0;
  std::string job_id;
  std::string token;
  std::string report_log{};  ///< a file; "" where the process outlives no loss
};

/// The loop to run, once the trainer has said which. What it throws the trainer is told, and no
/// loop runs.
using ResolveLoop = std::function<BoundLoop(const Assignment&)>;

/// What a worker's link writes to.
LinkRecorder link_recorder(const Board& board, BlackBoxWriter& box, int worker);

/// Joins by `link`, runs the loop and tells the trainer how it ended; true if it ended well.
/// `stages`: of the start-up so far. Throws nothing: what goes wrong is what the trainer is told.
bool run_worker(WorkerLink& link, const WorkerIdentity& identity, JobMemory& memory, Board& board,
                BlackBoxWriter& box, const ResolveLoop& resolve,
                std::vector<BootstrapStage> stages);

/// The life of a worker process from its start on: run_worker() with a connection and mappings of
/// its own. Returns the exit code of the process.
int run_worker_process(const WorkerEnvironment& environment, const ResolveLoop& resolve);

}  // namespace weft
