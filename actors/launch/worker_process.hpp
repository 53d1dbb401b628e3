#pragma once
/// WorkerProcess: starts a worker's process, and prefixes its output with the worker's number.

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/launch/worker_command.hpp"
#include "actors/process/outlet.hpp"
#include "actors/protocol/host_messages.hpp"

namespace weft {

/// Receives the output of workers.
struct WorkerOutput {
  Outlet* out = nullptr;
  Outlet* err = nullptr;
  /// If set, replaces both streams. It receives each line without the newline.
  std::function<void(int worker, bool err, std::string_view line)> lines{};
  std::string who = "worker";  ///< the word before the number in a line's prefix
};

/// Owns the child process. The destructor kills the process together with its process group, and
/// reaps it. The kernel kills the process when the thread that started it ends; only that thread
/// may use this object.
class WorkerProcess {
 public:
  /// Starts the worker with `variables` ("NAME=value") added to its environment. Its output goes to
  /// output.out and output.err as "[worker 2] line". Throws io.
  WorkerProcess(int worker, const WorkerCommand& command, const std::vector<std::string>& variables,
                WorkerOutput output);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  /// The following functions return descriptors for poll(). They return -1 for one that is closed
  /// or must not be read now.
  int pidfd() const { return running_ ? pidfd_ : -1; }
  int out() const { return wanted(out_); }
  int err() const { return wanted(err_); }

  /// Passes on the output that is available, as far as the outlets accept it.
  void pump();
  /// Reaps the process and passes on the rest of its output. Must be called when pidfd() has become
  /// readable.
  ProcessEnded reap();
  void kill() const;
  /// Lets the worker's main thread write its stack (stack_dump.hpp). A stopped process can't do so.
  void ask_for_stack() const;

 private:
  struct Stream {
    int fd = -1;
    Outlet* to = nullptr;
    std::string line;    ///< the beginning of a line that isn't complete yet
    std::string tagged;  ///< prefixed lines that aren't written yet
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
  long oom_kills_;  ///< number of kills on the machine before the process started
  WorkerOutput output_;
  Stream out_;
  Stream err_;
};

}  // namespace weft
