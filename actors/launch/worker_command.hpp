#pragma once
/// WorkerCommand: knows the executable, arguments, environment and folder with which a job starts
/// its workers.

#include <string>
#include <vector>

#include <weft/job/config.hpp>

namespace weft {

/// The values are copied when the job starts. Restarted workers therefore get the same values as
/// the first workers, even if the program has since changed its environment or folder, or if the
/// program's file was replaced.
class WorkerCommand {
 public:
  /// `is_named` says that the loop has a name, so the worker needs none of this program's
  /// arguments. Throws not_found or invalid_argument for scaling.worker_executable,
  /// WEFT_WORKER_WRAPPER or WEFT_LAUNCH_BIND. Prints the bindings to stderr if
  /// WEFT_LAUNCH_REPORT_BINDINGS is set.
  WorkerCommand(const ScalingConfig& scaling, bool is_named);
  ~WorkerCommand();
  WorkerCommand(const WorkerCommand&) = delete;
  WorkerCommand& operator=(const WorkerCommand&) = delete;

  /// The functions path() and words() return the file and the arguments that execve() gets.
  std::string path() const;
  std::vector<std::string> words(int worker) const;
  /// Returns `variables` and the rest of the program's environment, each as "NAME=value".
  std::vector<std::string> environment(const std::vector<std::string>& variables) const;
  const std::string& folder() const { return folder_; }
  /// Returns the CPUs that the worker may use. If empty, the worker may use those of the thread
  /// that starts it.
  const std::vector<int>& cpus(int worker) const {
    return shares_.empty() ? cpus_ : shares_[static_cast<std::size_t>(worker)];
  }
  /// Returns whether the worker's loop gets this process's stdin.
  bool gives_stdin(int worker) const { return gives_stdin_ && worker == 0; }
  /// Returns whether another program, such as a debugger, starts the worker. The worker may then be
  /// a child of that program, and slow.
  bool is_wrapped() const { return !wrapper_.empty(); }
  /// Returns whether the worker's executable is not this program's.
  bool is_other_executable() const { return file_ >= 0; }

 private:
  bool is_named_;
  std::vector<std::string> wrapper_;  ///< the debugger's words; {worker} stands for the number
  std::vector<std::string>
      arguments_;  ///< this program's; for named loops "--weft-worker={worker}"
  std::vector<std::string> environment_;
  std::string folder_;
  std::string executable_;  ///< the path of the workers' executable
  int file_ = -1;           ///< scaling.worker_executable, held open; -1: none
  std::vector<int> cpus_;
  std::vector<std::vector<int>> shares_;  ///< by worker; empty if workers aren't bound
  bool gives_stdin_;
};

}  // namespace weft
