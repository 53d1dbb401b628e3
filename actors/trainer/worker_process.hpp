#pragma once
/// A worker's process: a copy of this executable, with its output tagged.

#include <sys/types.h>

#include <string>
#include <vector>

#include <weft/actors/protocol.hpp>

namespace weft {

/// Owns the child: it is killed with its process group and reaped when this is destroyed, and
/// killed by the kernel when the thread that started it ends. Used by that thread.
class WorkerProcess {
 public:
  /// Starts the copy with this program's arguments and `variables` ("NAME=value") added to the
  /// environment; stdin is empty. Throws io.
  WorkerProcess(int worker, const std::vector<std::string>& variables);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  /// Readable once the process has ended.
  int pidfd() const { return pidfd_; }
  /// Its stdout and stderr; -1 once closed.
  int out() const { return out_.fd; }
  int err() const { return err_.fd; }

  /// Passes on what can be read, each line as "[worker 2] line".
  void pump();
  /// After pidfd() became readable: reaps, and passes on the rest of the output.
  ProcessEnded reap();
  void kill() const;

 private:
  struct Stream {
    int fd = -1;
    int to = 1;
    std::string line;
  };
  void pump(Stream& stream);
  void close(Stream& stream);

  int worker_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  bool running_ = false;
  Stream out_;
  Stream err_;
};

}  // namespace weft
