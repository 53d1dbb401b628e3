#pragma once
/// Runs an example whose workers a test kills.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/app_process.hpp"
#include "transport/board/board.hpp"

namespace weft::testing {

class WatchedRun {
 public:
  WatchedRun(const std::vector<std::string>& words, int workers,
             const std::vector<std::string>& variables = {})
      : app_(words, variables),
        workers_(workers),
        job_(app_.job().substr(0, 32)),
        board_(Board::open(job_, true)) {}

  AppProcess& app() { return app_; }
  ActorRow worker(int rank) const { return board_.read(1 + rank); }
  bool over() const { return board_.status() > JobStatus::running; }
  std::uint64_t step() const {
    std::uint64_t step = 0;
    for (int w = 0; w < workers_; ++w) step = std::max(step, worker(w).step);
    return step;
  }
  /// Returns a worker's process id, or 0 if no process of this worker is known to live.
  pid_t pid(int rank) const {
    const ActorRow row = worker(rank);
    return is_lost(row.state) || row.state == ActorState::absent ? 0 : row.pid;
  }
  /// Sends a signal to a worker. Returns false if the worker has no process.
  bool kill(int rank, int signal = SIGKILL) const {
    const pid_t pid = this->pid(rank);
    return pid > 0 && ::kill(pid, signal) == 0;
  }

  /// Runs to the end. Expects the undisturbed result, no step lost or counted twice, and nothing
  /// left behind.
  nlohmann::json expect_result_of(const nlohmann::json& undisturbed) {
    EXPECT_EQ(app_.wait(), 0) << app_.output();
    const nlohmann::json result = app_.result();
    for (const char* field : {"params_digest", "loss_history", "steps"}) {
      EXPECT_EQ(result.at(field), undisturbed.at(field)) << app_.output();
    }
    expect_nothing_left(job_);
    return result;
  }

 private:
  AppProcess app_;
  int workers_;
  std::string job_;
  Board board_;
};

}  // namespace weft::testing
