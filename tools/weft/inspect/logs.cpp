#include "tools/weft/inspect/logs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/history/job_logs.hpp"
#include "inspect/views/colours.hpp"
#include "tools/weft/inspect/job.hpp"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kBetweenReads{200};

struct LogsOptions {
  std::string job;
  std::vector<int> workers;
  std::string level = "trace";
  double since_s = 0;
  std::size_t last = 0;
  bool follow = false;
  bool json = false;
};

std::int64_t unix_now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count();
}

class LogsCommand {
 public:
  LogsCommand(JobReader& reader, const LogsOptions& options)
      : options_(options),
        reader_(reader),
        job_(reader.read({.control = false, .processes = false, .events = true})),
        run_dir_(job_.header.run_dir),
        colours_(!options.json && wants_colours()) {}

  int run() {
    JobLogs logs = open();
    if (is_empty_) {
      fmt::print(stderr, "{}: there are no log files and no events\n", visible(run_dir_));
      return kUnreadable;
    }
    filter_.workers = options_.workers;
    filter_.level = find_log_level(options_.level).value_or(0);
    if (options_.since_s > 0) filter_.since_unix_ns = since_unix_ns();
    const bool goes_on = options_.follow && is_running();
    print_all(logs, goes_on);
    if (goes_on) follow(logs);
    return 0;
  }

 private:
  JobLogs open() {
    std::vector<LogFile> files = find_log_files(run_dir_);
    std::vector<LogEntry> events = find_logged_events(job_, files);
    is_empty_ = files.empty() && events.empty();
    return {std::move(files), std::move(events)};
  }

  bool is_running() const { return job_.live && job_.held && !job_.over(); }

  /// Returns the time from which logs are shown. The option's seconds count back from now, or, if
  /// the job is over, from its last record.
  std::int64_t since_unix_ns() {
    std::int64_t latest = 0;
    if (is_running()) {
      latest = unix_now_ns();
    } else {
      JobLogs logs = open();
      while (const auto entry = logs.next()) latest = std::max(latest, entry->unix_ns);
    }
    const double ns = std::min(options_.since_s * 1e9, static_cast<double>(latest));
    return latest - static_cast<std::int64_t>(ns);
  }

  void print(const LogEntry& entry) const {
    fmt::print("{}", options_.json ? log_json(entry) : log_text(entry, colours_));
  }

  /// Prints the existing records, or only the last ones if the options say so.
  void print_all(JobLogs& logs, bool goes_on) {
    std::deque<LogEntry> kept;
    while (auto entry = logs.next(goes_on)) {
      if (!filter_.has(*entry)) continue;
      if (options_.last == 0) {
        print(*entry);
        continue;
      }
      kept.push_back(std::move(*entry));
      if (kept.size() > options_.last) kept.pop_front();
    }
    for (const LogEntry& entry : kept) print(entry);
    std::fflush(stdout);
  }

  /// Prints new records until the job is over.
  void follow(JobLogs& logs) {
    while (is_running()) {
      std::this_thread::sleep_for(kBetweenReads);
      job_ = reader_.read({.control = false, .processes = false});
      for (const LogEntry& entry : logs.news(run_dir_, is_running())) {
        if (filter_.has(entry)) print(entry);
      }
      std::fflush(stdout);
    }
  }

  const LogsOptions& options_;
  JobReader& reader_;
  Snapshot job_;
  const std::string run_dir_;
  LogFilter filter_;
  bool colours_;
  bool is_empty_ = false;
};

std::string check_level(const std::string& name) {
  return find_log_level(name)
             ? ""
             : fmt::format("\"{}\": expected trace, debug, info, warn, error or critical", name);
}

}  // namespace

void add_inspect_logs(CLI::App& inspect, int& code) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* logs = inspect.add_subcommand("logs",
                                          "show the logs of a job's trainer and workers, merged by "
                                          "time");
  logs->add_option("job", options->job, kJobHelp);
  logs->add_option("--worker", options->workers, "only of this worker; may be repeated")
      ->type_name("N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::NonNegativeNumber);
  logs->add_option("--level", options->level, "only records of this level and above")
      ->type_name("LEVEL")
      ->check(CLI::Validator(check_level, ""))
      ->capture_default_str();
  logs->add_option("--since", options->since_s,
                   "only the last seconds: up to now, or to the last record of a job that has "
                   "ended")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  logs->add_option("--last", options->last, "only the last N of the existing records")
      ->type_name("N");
  logs->add_flag("--follow,-f", options->follow, "follow the logs until the job has ended");
  logs->add_flag("--json", options->json,
                 "one JSON object per line, schema weft.logs/1 (docs/inspect.md)");
  logs->callback([options, &code] {
    code = with_job(options->job,
                    [&](JobReader& reader) { return LogsCommand(reader, *options).run(); });
  });
}

}  // namespace weft
