#pragma once
/// One record of a job's log, from a file of the run folder or from the black box.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

struct LogEntry {
  std::int64_t unix_ns = 0;  ///< 0: unknown
  int worker = -1;           ///< whose file or ring it is of; -1: the trainer
  int level = 2;             ///< as spdlog numbers it: 0 trace ... 5 critical
  std::string logger{};      ///< "weft.worker"; "": unknown
  std::uint64_t step = 0;    ///< low 16 bits, if it is an event
  std::string text{};        ///< may have several lines
  bool is_event = false;     ///< of the black box: no file has it, and the text may be cut
};

/// "warn" for 3; "unknown" beyond them.
std::string_view log_level_name(int level) noexcept;
/// Of a name, also of "warning".
std::optional<int> find_log_level(std::string_view name) noexcept;

/// Of a line as actors/process/log.cpp writes it; absent: it doesn't begin with a time. What else
/// can't be read is text.
std::optional<LogEntry> parse_log_line(std::string_view line, int worker);

/// The record with its newline: local time, level, worker, step, text. Further lines of the text
/// are indented, so that none looks like a record. `colours`: ANSI's, by level.
std::string log_text(const LogEntry& entry, bool colours);
/// One line, weft.logs/1, with its newline.
std::string log_json(const LogEntry& entry);

}  // namespace weft
