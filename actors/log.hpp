#pragma once
/// Logging by spdlog: loggers weft.trainer, weft.worker, weft.device, weft.transport. Every line
/// says which process it is of ("trainer", also for a worker in the trainer's process, or "worker
/// 3") and at which step that is: a worker's own, for the trainer the last that a worker asked for.

#include <cstdint>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

namespace weft {

struct LogOptions {
  std::string who;   ///< "trainer", "worker 3"
  std::string file;  ///< everything from info up; "" for none
};

/// Sets the four loggers up: the file, and stderr from the level of WEFT_LOG (trace, debug, info,
/// warn, error, off; default warn, and info where WEFT_DEBUG is set). Throws io if the file can't
/// be opened, invalid_argument for another WEFT_LOG or WEFT_DEBUG.
void init_logging(const LogOptions& options);

/// WEFT_DEBUG: 1 says why programs are compiled, 2 why they run, 3 what the passes make of them; 0
/// where it isn't set. Throws invalid_argument for another value.
int debug_level();

/// The step that log lines of this process show.
void set_log_step(std::uint64_t step) noexcept;

/// One of the four loggers; before init_logging(), one that writes warnings to stderr.
std::shared_ptr<spdlog::logger> logger(const std::string& name);

/// Forgets the four loggers; a program may have others.
void shutdown_logging();

}  // namespace weft
