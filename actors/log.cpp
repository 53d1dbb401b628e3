#include <weft/actors/log.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <weft/actors/outlet.hpp>
#include <weft/spmd/error.hpp>

namespace weft {
namespace {

constexpr std::array kLoggerNames = {"weft.trainer", "weft.worker", "weft.device",
                                     "weft.transport"};

std::atomic<std::uint64_t> log_step{0};

/// "worker 3 step 204".
class PlaceFlag : public spdlog::custom_flag_formatter {
 public:
  explicit PlaceFlag(std::string who) : who_(std::move(who)) {}
  void format(const spdlog::details::log_msg&, const std::tm&,
              spdlog::memory_buf_t& dest) override {
    const std::string text = fmt::format("{} step {}", who_, log_step.load());
    dest.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PlaceFlag>(who_);
  }

 private:
  std::string who_;
};

/// Waits for no reader of stderr: where one has stopped, lines are lost, which the log file has.
class ConsoleSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!stderr_.full()) stderr_.write({line.data(), line.size()});
  }
  void flush_() override { stderr_.flush(); }

 private:
  Outlet stderr_{STDERR_FILENO};
};

std::unique_ptr<spdlog::formatter> make_formatter(const std::string& who) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PlaceFlag>('*', who).set_pattern("%Y-%m-%dT%H:%M:%S.%f%z %l %n [%*] %v");
  return formatter;
}

spdlog::level::level_enum console_level() {
  const char* text = std::getenv("WEFT_LOG");
  if (text == nullptr || *text == '\0') {
    return debug_level() > 0 ? spdlog::level::info : spdlog::level::warn;
  }
  const auto level = spdlog::level::from_str(text);
  if (level == spdlog::level::off && std::string_view(text) != "off") {
    fail(Errc::invalid_argument,
         "WEFT_LOG = \"{}\": expected trace, debug, info, warn, error or off", text);
  }
  return level;
}

}  // namespace

int debug_level() {
  const char* text = std::getenv("WEFT_DEBUG");
  const std::string_view level = text == nullptr || *text == '\0' ? "0" : text;
  if (level.size() != 1 || level[0] < '0' || level[0] > '3') {
    fail(Errc::invalid_argument, "WEFT_DEBUG = \"{}\": expected 0, 1, 2 or 3", level);
  }
  return level[0] - '0';
}

void init_logging(const LogOptions& options) {
  set_log_step(0);
  std::vector<spdlog::sink_ptr> sinks;
  auto console = std::make_shared<ConsoleSink>();
  console->set_level(console_level());
  sinks.push_back(console);
  if (!options.file.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
    } catch (const spdlog::spdlog_ex& e) {
      fail(Errc::io, "log file {}: {}", options.file, e.what());
    }
    sinks.back()->set_level(spdlog::level::info);
  }
  for (const auto& sink : sinks) sink->set_formatter(make_formatter(options.who));
  for (const char* name : kLoggerNames) {
    auto made = std::make_shared<spdlog::logger>(name, sinks.begin(), sinks.end());
    made->set_level(std::min(console->level(), spdlog::level::info));
    made->flush_on(spdlog::level::info);
    spdlog::drop(name);
    spdlog::register_logger(made);
  }
}

void set_log_step(std::uint64_t step) noexcept { log_step.store(step, std::memory_order_relaxed); }

std::shared_ptr<spdlog::logger> logger(const std::string& name) {
  if (auto found = spdlog::get(name)) return found;
  static const auto fallback = [] {
    auto made =
        std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return fallback;
}

void shutdown_logging() {
  for (const char* name : kLoggerNames) spdlog::drop(name);
}

}  // namespace weft
