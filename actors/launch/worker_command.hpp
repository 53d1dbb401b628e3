#pragma once
/// WorkerCommand: knows the executable, arguments, environment and folder with which a job starts
/// its workers.

#include <string>
#include <vector>

#include <weft/job/config.hpp>

namespace weft {

/// The values are copied when the job starts. So restarted workers get the same values as the first
/// ones, even if the program has changed its environment or folder since, or if its file was
/// replaced.
class WorkerCommand {
 public:
  /// `is_named` says that the loop has a name, so that the worker needs none of this program's
  /// arguments. Throws not_found or invalid_argument for scaling.worker_executable,
  /// WEFT_WORKER_WRAPPER or WEFT_LAUNCH_BIND. Prints the bindings to stderr if
  /// WEFT_LAUNCH_REPORT_BINDINGS is set.
  WorkerCommand(const ScalingConfig& scaling, bool is_named);
  ~WorkerCommand();
  WorkerCommand(const WorkerCommand&) = delete;
  WorkerCommand& operator=(const WorkerCommand&) = delete;

  /// path() and words() return the file and the arguments for execve().
  std::string path() const;
  std::vector<std::string> words(int worker) const;
  /// Returns `variables` and the rest of the program's environment, each as "NAME=value".
  std::vector<std::string> environment(const std::vector<std::string>& variables) const;
  const std::string& folder() const { return folder_; }
  /// Returns the CPUs that the worker may use. If empty, the worker may use the same CPUs as the
  /// thread that starts it.
  const std::vector<int>& cpus(int worker) const {
    return shares_.empty() ? cpus_ : shares_[static_cast<std::size_t>(worker)];
  }
  /// Returns whether the worker's loop gets this process's stdin.
  bool gives_stdin(int worker) const { return gives_stdin_ && worker == 0; }
  /// Returns whether another program, such as a debugger, starts the worker. Then the worker may be
  /// a child of that program, and may start slowly.
  bool is_wrapped() const { return !wrapper_.empty(); }
  /// Returns whether the workers' executable is a different file from this program's.
  bool is_other_executable() const { return file_ >= 0; }

 private:
  bool is_named_;
  std::vector<std::string> wrapper_;  ///< words that start the debugger; {worker} stands for the
                                      ///< number
  std::vector<std::string>
      arguments_;  ///< this program's arguments; for named loops "--weft-worker={worker}"
  std::vector<std::string> environment_;
  std::string folder_;
  std::string executable_;  ///< the path of the workers' executable
  int file_ = -1;           ///< the open scaling.worker_executable; -1: not set
  std::vector<int> cpus_;
  std::vector<std::vector<int>> shares_;  ///< CPUs by worker; empty if workers aren't bound
  bool gives_stdin_;
};

}  // namespace weft
