#include "actors/process/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <weft/inspect/log.hpp>
#include <weft/tensor/error.hpp>

#include "actors/process/outlet.hpp"

namespace weft {
namespace {

constexpr std::array kLoggerNames = {"weft.trainer", "weft.worker", "weft.device",
                                     "weft.transport"};

/// Formats who writes the line, and the step: "worker 3 step 204".
class PlaceFlag : public spdlog::custom_flag_formatter {
 public:
  PlaceFlag(std::string who, std::shared_ptr<const std::atomic<std::uint64_t>> step)
      : who_(std::move(who)), step_(std::move(step)) {}
  void format(const spdlog::details::log_msg&, const std::tm&,
              spdlog::memory_buf_t& dest) override {
    const std::string text = fmt::format("{} step {}", who_, step_->load());
    dest.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PlaceFlag>(who_, step_);
  }

 private:
  std::string who_;
  std::shared_ptr<const std::atomic<std::uint64_t>> step_;
};

/// The log sink that the program has set, if any.
struct UserSink {
  std::mutex mutex;
  std::function<void(const LogRecord&)> function;  ///< guarded by mutex
  std::atomic<bool> is_set{false};
};
UserSink& user_sink() {
  static UserSink* const sink = new UserSink;  // never destroyed: a Job that is static may log
                                               // later
  return *sink;
}

/// Gives records of level info and above to the program's sink. If the program has set none, writes
/// records to stderr, from the level in WEFT_LOG on. Never blocks on stderr: lines for which stderr
/// has no room are lost there, but they are in the log file.
class ConsoleSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  ConsoleSink(LogOptions options, std::shared_ptr<const std::atomic<std::uint64_t>> step,
              spdlog::level::level_enum stderr_level)
      : options_(std::move(options)), step_(std::move(step)), stderr_level_(stderr_level) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (user_sink().is_set && give_to_user(message)) return;
    if (message.level < stderr_level_) return;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!stderr_.full()) stderr_.write({line.data(), line.size()});
  }
  void flush_() override { stderr_.flush(); }

 private:
  bool give_to_user(const spdlog::details::log_msg& message) {
    UserSink& user = user_sink();
    const std::lock_guard lock(user.mutex);
    if (!user.function) return false;
    if (message.level < spdlog::level::info) return true;
    try {
      user.function({.level = static_cast<LogLevel>(message.level),
                     .logger = {message.logger_name.data(), message.logger_name.size()},
                     .job = options_.job,
                     .text = {message.payload.data(), message.payload.size()},
                     .worker = options_.worker,
                     .step = step_->load()});
    } catch (...) {  // a failing log must not end the job
    }
    return true;
  }

  const LogOptions options_;
  const std::shared_ptr<const std::atomic<std::uint64_t>> step_;
  const spdlog::level::level_enum stderr_level_;
  Outlet stderr_{STDERR_FILENO};
};

/// Records an event for each log record of level info or above.
class EventSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit EventSink(const EventWriter& events) : events_(events) {
    set_level(spdlog::level::info);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!events_.is_on()) return;
    const std::string_view text(message.payload.data(), message.payload.size());
    events_.put(EventKind::log, {.value = static_cast<std::uint64_t>(message.level),
                                 .text = events_.intern(text, true)});
  }
  void flush_() override {}

 private:
  const EventWriter events_;
};

spdlog::level::level_enum console_level(bool console) {
  const char* text = std::getenv("WEFT_LOG");
  if (text == nullptr || *text == '\0') {
    if (!console) return spdlog::level::off;
    return debug_level() > 0 ? spdlog::level::info : spdlog::level::warn;
  }
  const auto level = spdlog::level::from_str(text);
  if (level == spdlog::level::off && std::string_view(text) != "off") {
    fail(Errc::invalid_argument,
         "WEFT_LOG = \"{}\": expected trace, debug, info, warn, error or off", text);
  }
  return level;
}

/// Opens the file close-on-exec, so that programs that this process starts don't inherit it.
spdlog::sink_ptr open_file(const std::string& path) {
  spdlog::file_event_handlers handlers;
  handlers.after_open = [](const spdlog::filename_t&, std::FILE* file) {
    ::fcntl(::fileno(file), F_SETFD, FD_CLOEXEC);
  };
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, false, handlers);
    sink->set_level(spdlog::level::info);
    return sink;
  } catch (const spdlog::spdlog_ex& e) {
    fail(Errc::io, "log file {}: {}", path, e.what());
  }
}

class SpdlogJobLog : public JobLog {
 public:
  explicit SpdlogJobLog(const LogOptions& options) {
    const auto stderr_level = console_level(options.console);
    std::vector<spdlog::sink_ptr> sinks{
        std::make_shared<ConsoleSink>(options, step_, stderr_level)};
    if (!options.file.empty()) sinks.push_back(open_file(options.file));
    sinks.push_back(std::make_shared<EventSink>(options.events));
    for (const auto& sink : sinks) {
      auto formatter = std::make_unique<spdlog::pattern_formatter>();
      formatter->add_flag<PlaceFlag>('*', options.who, step_)
          .set_pattern("%Y-%m-%dT%H:%M:%S.%f%z %l %n [%*] %v");
      sink->set_formatter(std::move(formatter));
    }
    for (const char* name : kLoggerNames) {
      auto made = std::make_shared<spdlog::logger>(name, sinks.begin(), sinks.end());
      made->set_level(std::min(stderr_level, spdlog::level::info));
      made->flush_on(spdlog::level::info);
      loggers_.push_back(std::move(made));
    }
  }
  std::shared_ptr<spdlog::logger> find(const std::string& name) const override {
    const auto found = std::ranges::find(loggers_, name, &spdlog::logger::name);
    return found == loggers_.end() ? nullptr : *found;
  }
  void set_step(std::uint64_t step) noexcept override {
    step_->store(step, std::memory_order_relaxed);
  }

 private:
  const std::shared_ptr<std::atomic<std::uint64_t>> step_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  std::vector<std::shared_ptr<spdlog::logger>> loggers_;
};

thread_local std::shared_ptr<JobLog> thread_log;
std::atomic<std::shared_ptr<JobLog>> process_log;

}  // namespace

int debug_level() {
  const char* text = std::getenv("WEFT_DEBUG");
  const std::string_view level = text == nullptr || *text == '\0' ? "0" : text;
  if (level.size() != 1 || level[0] < '0' || level[0] > '3') {
    fail(Errc::invalid_argument, "WEFT_DEBUG = \"{}\": expected 0, 1, 2 or 3", level);
  }
  return level[0] - '0';
}

std::shared_ptr<JobLog> JobLog::open(const LogOptions& options) {
  return std::make_shared<SpdlogJobLog>(options);
}

LogScope::LogScope(std::shared_ptr<JobLog> log) : before_(std::exchange(thread_log, log)) {}

LogScope::~LogScope() { thread_log = std::move(before_); }

void set_thread_log(std::shared_ptr<JobLog> log) { thread_log = std::move(log); }

std::shared_ptr<JobLog> current_log() { return thread_log ? thread_log : process_log.load(); }

void set_process_log(std::shared_ptr<JobLog> log) { process_log.store(std::move(log)); }

void set_log_sink(std::function<void(const LogRecord&)> sink) {
  UserSink& user = user_sink();
  const std::lock_guard lock(user.mutex);
  user.function = std::move(sink);
  user.is_set = static_cast<bool>(user.function);
}

void set_log_step(std::uint64_t step) noexcept {
  if (const auto log = current_log()) log->set_step(step);
}

std::shared_ptr<spdlog::logger> logger(const std::string& name) {
  if (const auto log = current_log()) {
    if (auto found = log->find(name)) return found;
  }
  static const auto fallback = [] {
    auto made =
        std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return fallback;
}

}  // namespace weft
