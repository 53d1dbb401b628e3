#pragma once
/// For programs that log by spdlog: weft's lines in one of their sinks. Not part of weft.hpp, which
/// doesn't need spdlog's headers.

#include <utility>

#include <spdlog/details/log_msg.h>
#include <spdlog/sinks/sink.h>

#include <weft/log.hpp>

namespace weft {

/// Every line from info up goes to `sink` as from a logger of weft's name, with its time; the
/// sink's own level and pattern hold.
inline void set_log_sink(spdlog::sink_ptr sink) {
  set_log_sink([sink = std::move(sink)](const LogRecord& record) {
    const auto level = static_cast<spdlog::level::level_enum>(record.level);
    if (!sink->should_log(level)) return;
    sink->log({{record.logger.data(), record.logger.size()},
               level,
               {record.text.data(), record.text.size()}});
  });
}

}  // namespace weft
