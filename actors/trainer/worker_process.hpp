#pragma once
/// A worker's process: a copy of this executable, with its output tagged.

#include <sys/types.h>

#include <string>
#include <vector>

#include <weft/actors/outlet.hpp>
#include <weft/actors/protocol.hpp>

namespace weft {

/// Owns the child: it is killed with its process group and reaped when this is destroyed, and
/// killed by the kernel when the thread that started it ends. Used by that thread.
class WorkerProcess {
 public:
  /// Starts the copy with this program's arguments and `variables` ("NAME=value") added to the
  /// environment; stdin is empty. Its output goes to `out` and `err`, each line as "[worker 2]
  /// line". Throws io.
  WorkerProcess(int worker, const std::vector<std::string>& variables, Outlet& out, Outlet& err);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  /// What to wait for in poll(); -1 for what is closed, or would not be read now.
  int pidfd() const { return running_ ? pidfd_ : -1; }
  int out() const { return wanted(out_); }
  int err() const { return wanted(err_); }

  /// Passes on what can be read, as far as the outlets take it.
  void pump();
  /// After pidfd() became readable: reaps, and passes on the rest of the output.
  ProcessEnded reap();
  void kill() const;
  /// Asks its main thread for its stack (stack_dump.hpp); one that is stopped can't answer.
  void ask_for_stack() const;

 private:
  struct Stream {
    int fd = -1;
    Outlet* to = nullptr;
    std::string line;  ///< its beginning, while the end has not come
  };
  static int wanted(const Stream& stream) { return stream.to->full() ? -1 : stream.fd; }
  bool read_block(Stream& stream);
  void finish(Stream& stream);

  int worker_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  bool running_ = false;
  long oom_kills_;  ///< of the machine, when the process was started
  Stream out_;
  Stream err_;
};

}  // namespace weft
