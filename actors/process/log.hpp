#pragma once
/// Logging by spdlog: loggers weft.trainer, weft.worker, weft.device, weft.transport. Every line
/// has the writer ("trainer", also for a worker in the trainer's process, or "worker 3") and a
/// step: a worker's own step, or the last step that a worker asked the trainer for.
///
/// A process may have several jobs at once, each with its own log. A line goes to the log of the
/// thread that writes it; threads started by job_thread.hpp inherit the log of their starter.

#include <cstdint>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "transport/blackbox/event_writer.hpp"

namespace weft {

struct LogOptions {
  std::string who;       ///< "trainer", "worker 3"
  std::string file;      ///< everything from level info up; "": no file
  std::string job = {};  ///< for set_log_sink()
  int worker = -1;
  EventWriter events = {};  ///< a ring that any thread may write
  bool console = true;      ///< write to stderr if WEFT_LOG isn't set; else WEFT_LOG decides
};

/// The four loggers of a job in this process. Thread-safe.
class JobLog {
 public:
  /// The file, and stderr from the level of WEFT_LOG (trace, debug, info, warn, error, off; default
  /// warn, and info where WEFT_DEBUG is set). Throws io if the file can't be opened,
  /// invalid_argument for another WEFT_LOG or WEFT_DEBUG.
  static std::shared_ptr<JobLog> open(const LogOptions& options);
  virtual ~JobLog() = default;

  /// Null for a name that isn't one of the four.
  virtual std::shared_ptr<spdlog::logger> find(const std::string& name) const = 0;
  /// Sets the step shown in its lines.
  virtual void set_step(std::uint64_t step) noexcept = 0;
};

/// While it lives, this thread's lines go to `log`.
class LogScope {
 public:
  explicit LogScope(std::shared_ptr<JobLog> log);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  std::shared_ptr<JobLog> before_;
};

/// Sets this thread's log until the thread ends; null: the process's log.
void set_thread_log(std::shared_ptr<JobLog> log);
/// The log of this thread, else of the process; null if neither has one.
std::shared_ptr<JobLog> current_log();
/// Sets the log of threads without one: a worker's process has one job. Null resets it.
void set_process_log(std::shared_ptr<JobLog> log);

/// WEFT_DEBUG: 1 logs why programs are compiled, 2 also why they run, 3 also the result of each
/// pass; 0 if it isn't set. Throws invalid_argument for another value.
int debug_level();

/// Sets the step shown in lines of this thread's log.
void set_log_step(std::uint64_t step) noexcept;

/// One of the four loggers of current_log(); without one, a logger that writes warnings to stderr.
std::shared_ptr<spdlog::logger> logger(const std::string& name);

}  // namespace weft
