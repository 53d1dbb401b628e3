#pragma once
/// WorkerCommand: the executable, arguments, environment and folder with which a job starts its
/// workers.

#include <string>
#include <vector>

#include <weft/config.hpp>

namespace weft {

/// Copied when the job starts, so that restarted workers get what the first ones got. The program
/// may change its environment and its folder meanwhile, and its file may be replaced.
class WorkerCommand {
 public:
  /// `is_named`: the loop has a name, so that the worker needs none of this program's arguments.
  /// Throws not_found or invalid_argument for scaling.worker_executable, WEFT_WORKER_WRAPPER or
  /// WEFT_LAUNCH_BIND. Says the bindings on stderr if WEFT_LAUNCH_REPORT_BINDINGS is set.
  WorkerCommand(const ScalingConfig& scaling, bool is_named);
  ~WorkerCommand();
  WorkerCommand(const WorkerCommand&) = delete;
  WorkerCommand& operator=(const WorkerCommand&) = delete;

  /// The file and the arguments of execve() for worker `worker`.
  std::string path() const;
  std::vector<std::string> words(int worker) const;
  /// "NAME=value": `variables`, and the rest of the program's environment.
  std::vector<std::string> environment(const std::vector<std::string>& variables) const;
  const std::string& folder() const { return folder_; }
  /// CPUs that the worker may use; empty: those of the thread that starts it.
  const std::vector<int>& cpus(int worker) const {
    return shares_.empty() ? cpus_ : shares_[static_cast<std::size_t>(worker)];
  }
  /// Whether the worker's loop gets the stdin of this process.
  bool gives_stdin(int worker) const { return gives_stdin_ && worker == 0; }
  /// Whether another program (a debugger) starts the worker: the worker may be its child, and slow.
  bool is_wrapped() const { return !wrapper_.empty(); }
  /// Whether the worker's executable is not this program's.
  bool is_other_executable() const { return file_ >= 0; }

 private:
  bool is_named_;
  std::vector<std::string> wrapper_;  ///< {worker} stands for the number
  std::vector<std::string>
      arguments_;  ///< of this program; "--weft-worker={worker}" for named loops
  std::vector<std::string> environment_;
  std::string folder_;
  std::string executable_;  ///< its real path
  int file_ = -1;           ///< of scaling.worker_executable, held open
  std::vector<int> cpus_;
  std::vector<std::vector<int>> shares_;  ///< by worker, where each has its own
  bool gives_stdin_;
};

}  // namespace weft
