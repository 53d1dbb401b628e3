#pragma once
/// Where the log's lines go, for a program that has a log of its own.

#include <cstdint>
#include <functional>
#include <string_view>

namespace weft {

/// spdlog's levels, by the same numbers.
enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, critical };

/// A line of the log; the texts live as long as the call.
struct LogRecord {
  LogLevel level = LogLevel::info;
  std::string_view logger;  ///< weft.trainer, weft.worker, weft.device or weft.transport
  std::string_view job;     ///< its id; "" outside a job
  std::string_view text;
  int worker = -1;         ///< whose process wrote it; -1: the trainer's
  std::uint64_t step = 0;  ///< the last that the process has begun, or the trainer was asked for
};

/// Every line from info up of every job of this process, in place of stderr; an empty function
/// brings stderr back. It is called on the thread that logs, by one thread at a time, must return
/// soon, and what it throws is dropped. Workers are other processes: a worker's lines are in its
/// file in the run's folder, and reach a sink that its own process has set (Loop's setup function).
/// <weft/spdlog_sink.hpp> takes a sink of spdlog.
void set_log_sink(std::function<void(const LogRecord&)> sink);

}  // namespace weft
