#pragma once
/// Logging by spdlog, with the loggers weft.trainer, weft.worker, weft.device and weft.transport.
/// Every line shows its writer and a step. The writer is "worker 3" in a worker's process, and
/// "trainer" in the trainer's process, also for a worker in it. A worker shows its own step, and
/// the trainer shows the last step for which a worker asked.
///
/// A process may run several jobs at once, each with its own log. A line goes to the log of the
/// thread that writes it. Threads started by job_thread.hpp inherit the log of the thread that
/// started them.

#include <cstdint>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "transport/blackbox/event_writer.hpp"

namespace weft {

struct LogOptions {
  std::string who;       ///< "trainer", "worker 3"
  std::string file;      ///< receives every record of level info and above; "": no file
  std::string job = {};  ///< the job's id, for set_log_sink()
  int worker = -1;
  EventWriter events = {};  ///< a ring that any thread may write
  bool console = true;      ///< whether to write to stderr even if WEFT_LOG isn't set
};

/// The four loggers of a job in this process. Thread-safe.
class JobLog {
 public:
  /// Opens a log that writes to the file, and to stderr from the level of WEFT_LOG (trace, debug,
  /// info, warn, error, off). The default level is warn, or info if WEFT_DEBUG is set. Throws io if
  /// the file can't be opened, and invalid_argument for another value of WEFT_LOG or WEFT_DEBUG.
  static std::shared_ptr<JobLog> open(const LogOptions& options);
  virtual ~JobLog() = default;

  /// Returns the logger of this name; null if it isn't one of the four.
  virtual std::shared_ptr<spdlog::logger> find(const std::string& name) const = 0;
  /// Sets the step shown in this log's lines.
  virtual void set_step(std::uint64_t step) noexcept = 0;
};

/// While it lives, the lines of its thread go to `log`.
class LogScope {
 public:
  explicit LogScope(std::shared_ptr<JobLog> log);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  std::shared_ptr<JobLog> before_;
};

/// Sets this thread's log until the thread ends. Null means the process's log.
void set_thread_log(std::shared_ptr<JobLog> log);
/// Returns the log of this thread or, if it has none, of the process; null if neither has one.
std::shared_ptr<JobLog> current_log();
/// Sets the log for threads without their own log. A worker's process uses this function, because
/// it has only one job. Null resets the log.
void set_process_log(std::shared_ptr<JobLog> log);

/// Returns the value of WEFT_DEBUG; 0 if it isn't set. With 1 weft logs why programs are compiled,
/// with 2 also why they run, with 3 also the result of each pass. Throws invalid_argument for
/// another value.
int debug_level();

/// Sets the step that is shown in lines of this thread's log.
void set_log_step(std::uint64_t step) noexcept;

/// Returns one of the four loggers of current_log(). Without a current log, returns a logger that
/// writes warnings to stderr.
std::shared_ptr<spdlog::logger> logger(const std::string& name);

}  // namespace weft
