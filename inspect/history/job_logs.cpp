#include "inspect/history/job_logs.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Returns the worker of a log file, or -1 for the trainer; nothing if the file isn't a process's
/// log.
std::optional<int> worker_of_file(std::string_view name) {
  if (name == "trainer.log") return -1;
  constexpr std::string_view kBegin = "worker-";
  constexpr std::string_view kEnd = ".log";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return {};
  name.remove_prefix(kBegin.size());
  name.remove_suffix(std::min(kEnd.size(), name.size()));
  int worker = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), worker);
  if (error != std::errc() || end != name.data() + name.size() || worker < 0) return {};
  return worker;
}

std::optional<LogEntry> logged_event(const Snapshot& job, const EventRing& ring,
                                     const Event& event) {
  constexpr int kError = 4;
  if (event.kind != EventKind::log && event.kind != EventKind::error) return {};
  LogEntry entry{.worker = ring.worker,
                 .level = event.kind == EventKind::error
                              ? kError
                              : static_cast<int>(std::min<std::uint64_t>(event.value, 6)),
                 .step = event.step,
                 .text = std::string(event.text),
                 .is_event = true};
  if (__builtin_add_overflow(event.at_ns, job.unix_minus_monotonic_ns, &entry.unix_ns)) {
    entry.unix_ns = 0;
  }
  return entry;
}

}  // namespace

std::vector<LogFile> find_log_files(const std::string& run_dir) {
  std::vector<LogFile> files;
  std::vector<std::pair<int, std::string>> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run_dir, none)) {
    if (const auto worker = worker_of_file(entry.path().filename().string())) {
      found.emplace_back(*worker, entry.path().string());
    }
  }
  std::ranges::sort(found);
  files.reserve(found.size());
  for (auto& [worker, path] : found) files.emplace_back(std::move(path), worker);
  return files;
}

std::vector<LogEntry> find_logged_events(const Snapshot& job, const std::vector<LogFile>& files) {
  std::vector<LogEntry> entries;
  for (const EventRing& ring : job.rings) {
    if (std::ranges::find(files, ring.worker, &LogFile::worker) != files.end()) continue;
    for (const Event& event : ring.events) {
      if (auto entry = logged_event(job, ring, event)) entries.push_back(std::move(*entry));
    }
  }
  std::ranges::stable_sort(entries, {}, &LogEntry::unix_ns);
  return entries;
}

bool LogFilter::has(const LogEntry& entry) const {
  const bool is_of_worker =
      workers.empty() || std::ranges::find(workers, entry.worker) != workers.end();
  return is_of_worker && entry.level >= level && entry.unix_ns >= since_unix_ns;
}

JobLogs::JobLogs(std::vector<LogFile> files, std::vector<LogEntry> events)
    : events_(std::make_move_iterator(events.begin()), std::make_move_iterator(events.end())) {
  for (LogFile& file : files) sources_.push_back({.file = std::move(file)});
}

void JobLogs::read_next(Source& source, bool goes_on) {
  source.next = source.file.next();
  if (!source.next && !goes_on) {
    source.file.end_line();
    source.next = source.file.next();
  }
  if (!source.next) source.next = source.file.take_last();
  if (source.next) source.latest_ns = std::max(source.latest_ns, source.next->unix_ns);
}

std::optional<LogEntry> JobLogs::next(bool goes_on) {
  Source* first = nullptr;
  for (Source& source : sources_) {
    if (!source.next) read_next(source, goes_on);
    if (source.next && (first == nullptr || source.latest_ns < first->latest_ns)) first = &source;
  }
  const bool has_event = !events_.empty();
  if (has_event && (first == nullptr || events_.front().unix_ns < first->latest_ns)) {
    LogEntry entry = std::move(events_.front());
    events_.pop_front();
    return entry;
  }
  return first == nullptr ? std::nullopt : std::exchange(first->next, std::nullopt);
}

void JobLogs::add_new_files(const std::string& run_dir) {
  for (LogFile& file : find_log_files(run_dir)) {
    const bool is_known = std::ranges::any_of(
        sources_, [&](const Source& source) { return source.file.worker() == file.worker(); });
    if (!is_known) sources_.push_back({.file = std::move(file)});
  }
}

std::vector<LogEntry> JobLogs::news(const std::string& run_dir, bool goes_on) {
  add_new_files(run_dir);
  std::int64_t until_ns = std::numeric_limits<std::int64_t>::max();
  for (Source& source : sources_) {
    LogFile& file = source.file;
    file.renew();
    const auto read = [&] {
      while (auto entry = file.next()) held_.push_back(std::move(*entry));
    };
    read();
    if (!goes_on) {
      file.end_line();
      read();
    }
    if (goes_on && file.has_grown()) {
      until_ns = std::min(until_ns, file.last_ns().value_or(until_ns));
    } else if (auto entry = file.take_last()) {
      held_.push_back(std::move(*entry));
    }
  }
  std::ranges::stable_sort(held_, {}, &LogEntry::unix_ns);
  const auto end = std::ranges::upper_bound(held_, until_ns, {}, &LogEntry::unix_ns);
  std::vector<LogEntry> given(std::make_move_iterator(held_.begin()), std::make_move_iterator(end));
  held_.erase(held_.begin(), end);
  return given;
}

}  // namespace weft
