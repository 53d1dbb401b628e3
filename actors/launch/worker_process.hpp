#pragma once
/// A worker's process, with its output tagged.

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/launch/worker_command.hpp"
#include "actors/process/outlet.hpp"
#include "actors/protocol/protocol.hpp"

namespace weft {

/// Where the lines go that workers print.
struct WorkerOutput {
  Outlet* out = nullptr;
  Outlet* err = nullptr;
  /// In place of both: told of each line, without its end.
  std::function<void(int worker, bool err, std::string_view line)> lines{};
};

/// Owns the child: it is killed with its process group and reaped when this is destroyed, and
/// killed by the kernel when the thread that started it ends. Used by that thread.
class WorkerProcess {
 public:
  /// Starts it with `variables` ("NAME=value") added to its environment; stdin is empty. Its lines
  /// go to output.out and output.err as "[worker 2] line". Throws io.
  WorkerProcess(int worker, const WorkerCommand& command, const std::vector<std::string>& variables,
                WorkerOutput output);
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
    std::string line;    ///< its beginning, while the end has not come
    std::string tagged;  ///< lines that are to be written
  };
  int wanted(const Stream& stream) const {
    return !output_.lines && stream.to->full() ? -1 : stream.fd;
  }
  bool read_block(Stream& stream);
  void finish(Stream& stream);
  void give(Stream& stream, std::string_view line);
  static void write(Stream& stream);
  void kill_group() const;

  int worker_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  bool running_ = false;
  long oom_kills_;  ///< of the machine, when the process was started
  WorkerOutput output_;
  Stream out_;
  Stream err_;
};

}  // namespace weft
