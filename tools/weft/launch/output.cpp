#include "tools/weft/launch/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"

namespace weft {
namespace {

/// The maximum number of blocks that are read after the program's end. They hold all output that
/// was left in the channel's buffer; later output comes from processes that the program has left
/// running.
constexpr int kBlocksLeftMax = 64;
constexpr std::size_t kWidthUnknown = 80;

/// Returns a text such as "12:30:01.250 ".
std::string time_of_day() {
  const auto now = std::chrono::system_clock::now();
  const auto in_second =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()) % 1000;
  return fmt::format("{:%H:%M:%S}.{:03} ",
                     fmt::localtime(std::chrono::system_clock::to_time_t(now)), in_second.count());
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool is_dumb() {
  const char* kind = std::getenv("TERM");
  return kind == nullptr || std::string_view(kind) == "dumb";
}

}  // namespace

LineLog::LineLog(std::string folder) : folder_(std::move(folder)) {
  require_local_path(folder_, "--log-dir");
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    fail(Errc::io, "--log-dir \"{}\": {}; expected a folder that this user may write to", folder_,
         error.message());
  }
}

void LineLog::add(int worker, const std::string& time, std::string_view line) {
  auto [found, is_new] = files_.try_emplace(worker);
  if (is_new) {
    const std::string name = worker < 0 ? "program" : fmt::format("worker-{}", worker);
    found->second.open(fmt::format("{}/{}.log", folder_, name), std::ios::app);
  }
  found->second << time << line << '\n' << std::flush;
}

Output::Output(const LaunchOptions& options)
    : options_(options),
      has_progress_(!options.no_progress && !is_dumb() && ::isatty(STDERR_FILENO) != 0),
      log_(options.log_dir.empty() ? nullptr : std::make_unique<LineLog>(options.log_dir)) {}

Replacements Output::open() {
  streams_.clear();
  screen_ = {};
  const bool out = options_.reads_lines() || (has_progress_ && ::isatty(STDOUT_FILENO) != 0);
  const bool err = options_.reads_lines() || has_progress_;
  if (out && err && is_same_file(STDOUT_FILENO, STDERR_FILENO)) {
    add_stream({STDOUT_FILENO, STDERR_FILENO});
  } else {
    if (out) add_stream({STDOUT_FILENO});
    if (err) add_stream({STDERR_FILENO});
  }
  Replacements replacements;
  for (const auto& stream : streams_) stream->channel->add_to(replacements);
  return replacements;
}

void Output::add_stream(std::vector<int> streams) {
  const int to = streams.back();
  const bool is_terminal = ::isatty(to) != 0;
  Lines::Keep keep;
  if (log_) {
    keep = [this](int worker, std::string_view line) {
      log_->add(worker, options_.timestamps ? time_of_day() : "", line);
    };
  }
  auto lines = std::make_unique<Lines>(
      LineOptions{.tags = options_.tag_output,
                  .only = options_.only,
                  .timestamps = options_.timestamps,
                  .colours = is_terminal && !is_set("NO_COLOR") && !is_dumb(),
                  .whole = options_.reads_lines()},
      time_of_day, std::move(keep));
  const bool has_screen = has_progress_ && is_same_file(to, STDERR_FILENO);
  streams_.push_back(
      std::make_unique<Stream>(Stream{std::make_unique<ProgramStream>(std::move(streams)),
                                      std::move(lines), Outlet(to), has_screen}));
}

void Output::started() {
  for (const auto& stream : streams_) stream->channel->let_go();
}

bool Output::has_status() const {
  return has_progress_ && ::tcgetpgrp(STDERR_FILENO) == ::getpgrp();
}

void Output::status(std::string_view line) {
  for (const auto& stream : streams_) {
    // While output waits for a slow terminal, no status line is drawn, because it would be outdated
    // when it is shown.
    if (!stream->has_screen || !stream->outlet.empty()) continue;
    stream->outlet.write(screen_.status(line));
    return;
  }
}

std::size_t Output::width() const {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : kWidthUnknown;
}

void Output::resized() const {
  for (const auto& stream : streams_) stream->channel->take_size();
}

void Output::add_to(std::vector<pollfd>& waits) const {
  for (const auto& stream : streams_) {
    const int in = stream->outlet.full() ? -1 : stream->channel->fd();
    waits.push_back({.fd = in, .events = POLLIN, .revents = 0});
    const int out = stream->outlet.empty() ? -1 : stream->outlet.fd();
    waits.push_back({.fd = out, .events = POLLOUT, .revents = 0});
  }
}

void Output::show(Stream& stream, const std::string& text) {
  if (text.empty()) return;
  stream.in_line = text.back() != '\n';
  stream.outlet.write(stream.has_screen ? screen_.print(text) : text);
}

void Output::end_line() {
  for (const auto& stream : streams_) {
    if (!stream->in_line || ::isatty(stream->outlet.fd()) == 0) continue;
    show(*stream, "\n");
    stream->outlet.flush();
  }
}

bool Output::pass(Stream& stream) {
  std::string text;
  const bool more = stream.channel->read(text);
  if (!text.empty()) show(stream, stream.lines->take(text));
  return more;
}

void Output::serve() {
  for (const auto& stream : streams_) {
    stream->outlet.flush();
    if (!stream->outlet.full()) pass(*stream);
  }
}

void Output::finish() {
  for (const auto& stream : streams_) {
    for (int i = 0; i < kBlocksLeftMax && pass(*stream); ++i) {
    }
    show(*stream, stream->lines->finish());
    if (stream->has_screen) stream->outlet.write(screen_.status(""));
    while (!stream->outlet.empty()) {
      pollfd room{.fd = stream->outlet.fd(), .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
      stream->outlet.flush();
    }
  }
}

}  // namespace weft
