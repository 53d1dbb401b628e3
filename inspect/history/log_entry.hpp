#pragma once
/// LogEntry: one record of a job's log, from a file of the run folder or from the black box.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

struct LogEntry {
  std::int64_t unix_ns = 0;  ///< 0 if unknown
  int worker = -1;           ///< the worker that wrote the record; -1: the trainer
  int level = 2;             ///< spdlog's number: 0 trace ... 5 critical
  std::string logger{};      ///< "weft.worker"; "" if unknown
  std::uint64_t step = 0;    ///< only its low 16 bits if the record is an event
  std::string text{};        ///< may have several lines
  bool is_event = false;     ///< whether it is from the black box: in no file, and perhaps cut
};

/// Returns a level's name, such as "warn" for 3; "unknown" for a number that spdlog doesn't have.
std::string_view log_level_name(int level) noexcept;
/// Returns the level of a name; "warning" is accepted too.
std::optional<int> find_log_level(std::string_view name) noexcept;

/// Parses a line that actors/process/log.cpp wrote. Returns nothing if the line doesn't begin with
/// a time. Parts that can't be parsed remain in the text.
std::optional<LogEntry> parse_log_line(std::string_view line, int worker);

/// Returns the record as text that ends with a newline: local time, level, worker, step, message.
/// Further lines of the message are indented, so that they don't look like records. `colours` shows
/// the level by ANSI colors.
std::string log_text(const LogEntry& entry, bool colours);
/// Returns the record as one line of JSON in the schema weft.logs/1, with a newline.
std::string log_json(const LogEntry& entry);

}  // namespace weft
