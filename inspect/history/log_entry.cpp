#include "inspect/history/log_entry.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"trace", "debug", "info",
                                                         "warn",  "error", "critical"};
constexpr std::array<const char*, 6> kLevelColours = {"2", "2", "", "33", "31", "1;31"};
constexpr std::int64_t kSecondNs = 1'000'000'000;

/// Parses the complete text as a number. Returns false if it isn't a number.
template <typename Number>
bool to_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end;
}

/// Removes the first word, and the blank after it, from `text`. Returns the word.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// Parses a time zone such as "+02:00". Returns seconds east of Greenwich.
std::optional<int> parse_zone(std::string_view text) {
  int hours = 0;
  int minutes = 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
      !to_number(text.substr(1, 2), hours) || !to_number(text.substr(4, 2), minutes)) {
    return {};
  }
  const int seconds = hours * 3600 + minutes * 60;
  return text[0] == '-' ? -seconds : seconds;
}

/// Parses a time such as "2026-11-24T23:57:58.138178+00:00". Returns nanoseconds since 1970.
std::optional<std::int64_t> parse_time(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd.dddddd";
  if (text.size() < kForm.size()) return {};
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !is_digit : text[i] != kForm[i]) return {};
  }
  const auto number = [&](std::size_t begin, std::size_t count) {
    int value = 0;
    to_number(text.substr(begin, count), value);
    return value;
  };
  const std::optional<int> zone = parse_zone(text.substr(kForm.size()));
  if (!zone) return {};
  std::tm time{};
  time.tm_year = number(0, 4) - 1900;
  time.tm_mon = number(5, 2) - 1;
  time.tm_mday = number(8, 2);
  time.tm_hour = number(11, 2);
  time.tm_min = number(14, 2);
  time.tm_sec = number(17, 2);
  // Only the years 1970 to 2200 are accepted. Their times fit in 64 bits of nanoseconds.
  if (time.tm_year < 70 || time.tm_year > 300) return {};
  return (std::int64_t{::timegm(&time)} - *zone) * kSecondNs + std::int64_t{number(20, 6)} * 1000;
}

/// Removes a prefix such as "[worker 3 step 204] " from the text, and returns its step.
std::optional<std::uint64_t> take_step(std::string_view& text) {
  constexpr std::string_view kStep = " step ";
  const std::size_t end = text.find("] ");
  if (!text.starts_with('[') || end == std::string_view::npos) return {};
  const std::string_view place = text.substr(1, end - 1);
  const std::size_t at = place.rfind(kStep);
  std::uint64_t step = 0;
  if (at == std::string_view::npos || !to_number(place.substr(at + kStep.size()), step)) return {};
  text.remove_prefix(end + 2);
  return step;
}

std::string time_text(std::int64_t unix_ns) {
  if (unix_ns <= 0) return fmt::format("{:23}", "-");
  const std::time_t seconds = unix_ns / kSecondNs;
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", fmt::localtime(seconds),
                     unix_ns % kSecondNs / 1'000'000);
}

std::string writer_of(const LogEntry& entry) {
  return entry.worker < 0 ? "trainer" : fmt::format("worker {}", entry.worker);
}

}  // namespace

std::string_view log_level_name(int level) noexcept {
  if (level < 0 || level >= static_cast<int>(kLevelNames.size())) return "unknown";
  return kLevelNames[static_cast<std::size_t>(level)];
}

std::optional<int> find_log_level(std::string_view name) noexcept {
  if (name == "warning") name = "warn";
  const auto found = std::ranges::find(kLevelNames, name);
  if (found == kLevelNames.end()) return {};
  return static_cast<int>(found - kLevelNames.begin());
}

std::optional<LogEntry> parse_log_line(std::string_view line, int worker) {
  const std::optional<std::int64_t> time = parse_time(line.substr(0, line.find(' ')));
  if (!time) return {};
  LogEntry entry{.unix_ns = *time, .worker = worker};
  take_word(line);
  std::string_view rest = line;
  const std::optional<int> level = find_log_level(take_word(rest));
  const std::string_view logger = take_word(rest);
  const std::optional<std::uint64_t> step = take_step(rest);
  if (!level || !step) {
    entry.text = line;
    return entry;
  }
  entry.level = *level;
  entry.logger = logger;
  entry.step = *step;
  entry.text = rest;
  return entry;
}

std::string log_text(const LogEntry& entry, bool colours) {
  std::string text = fmt::format("{}  {:<8}  {:<10}  step {:<6}  ", time_text(entry.unix_ns),
                                 log_level_name(entry.level), writer_of(entry), entry.step);
  std::string_view rest = entry.text;
  for (bool is_first = true; is_first || !rest.empty(); is_first = false) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (!is_first) text += "\n    ";
    text += visible(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const bool has_colour = entry.level >= 0 && entry.level < std::ssize(kLevelColours);
  const std::string_view colour =
      colours && has_colour ? kLevelColours[static_cast<std::size_t>(entry.level)] : "";
  return colour.empty() ? text + "\n" : fmt::format("\x1b[{}m{}\x1b[0m\n", colour, text);
}

std::string log_json(const LogEntry& entry) {
  using Json = nlohmann::json;
  const Json json{{"schema", "weft.logs/1"}, {"at_unix_ns", entry.unix_ns},
                  {"worker", entry.worker},  {"level", log_level_name(entry.level)},
                  {"logger", entry.logger},  {"step", entry.step},
                  {"text", entry.text},      {"from", entry.is_event ? "blackbox" : "file"}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft
