#pragma once
/// Logging by spdlog: loggers weft.trainer, weft.worker, weft.device, weft.transport. Every line
/// says which process it is of ("trainer", also for a worker in the trainer's process, or "worker
/// 3") and at which step that is: a worker's own, for the trainer the last that a worker asked for.
///
/// A process may have several jobs at once, and each has a log of its own. A line goes to the log
/// of the thread that writes it: job_thread.hpp starts threads that have their starter's log.

#include <cstdint>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

namespace weft {

struct LogOptions {
  std::string who;       ///< "trainer", "worker 3"
  std::string file;      ///< everything from info up; "" for none
  std::string job = {};  ///< for set_log_sink()
  int worker = -1;
  bool console = true;  ///< stderr, where WEFT_LOG isn't set; else WEFT_LOG decides
};

/// The four loggers of a job in this process. Thread-safe.
class JobLog {
 public:
  /// The file, and stderr from the level of WEFT_LOG (trace, debug, info, warn, error, off; default
  /// warn, and info where WEFT_DEBUG is set). Throws io if the file can't be opened,
  /// invalid_argument for another WEFT_LOG or WEFT_DEBUG.
  static std::shared_ptr<JobLog> open(const LogOptions& options);
  virtual ~JobLog() = default;

  /// Null for another name than those of the four.
  virtual std::shared_ptr<spdlog::logger> find(const std::string& name) const = 0;
  /// The step that its lines show.
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

/// Until the thread ends; null: the process's.
void set_thread_log(std::shared_ptr<JobLog> log);
/// That of this thread, or of the process; null where neither has one.
std::shared_ptr<JobLog> current_log();
/// Of threads without one: a worker's process has one job. Null ends it.
void set_process_log(std::shared_ptr<JobLog> log);

/// WEFT_DEBUG: 1 says why programs are compiled, 2 why they run, 3 what the passes make of them; 0
/// where it isn't set. Throws invalid_argument for another value.
int debug_level();

/// The step that the lines of this thread's log show.
void set_log_step(std::uint64_t step) noexcept;

/// One of the four loggers of current_log(); without one, a logger that writes warnings to stderr.
std::shared_ptr<spdlog::logger> logger(const std::string& name);

}  // namespace weft
