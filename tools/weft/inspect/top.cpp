#include "tools/weft/inspect/top.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "inspect/systems/system_reader.hpp"
#include "inspect/systems/system_top.hpp"
#include "inspect/views/colours.hpp"
#include "inspect/views/top_frame.hpp"
#include "inspect/why/explain.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/systems.hpp"

namespace weft {
namespace {

constexpr int kFrameMs = 200;
constexpr int kPlainColumns = 160;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

TopSize screen_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {.lines = size.ws_row, .columns = size.ws_col};
}

/// Switches the terminal, for the lifetime of the object, to another screen and to a mode that
/// passes on each key at once.
class Screen {
 public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write("\x1b[?1049h\x1b[?25l\x1b[2J");
  }
  ~Screen() {
    write("\x1b[?25h\x1b[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Writes only the lines that differ from those on the screen.
  void show(const std::vector<std::string>& lines) {
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i < shown_.size() && shown_[i] == lines[i]) continue;
      text += fmt::format("\x1b[{};1H\x1b[2K{}", i + 1, lines[i]);
    }
    if (lines.size() < shown_.size()) text += "\x1b[J";
    shown_ = lines;
    write(text);
  }
  void clear() {
    shown_.clear();
    write("\x1b[2J");
  }

 private:
  static void write(std::string_view text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  termios before_{};
  std::vector<std::string> shown_;
};

/// Waits for keys for the time of a frame, and returns the pressed keys; nothing if the terminal is
/// gone.
std::optional<std::vector<std::string>> read_keys() {
  pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&in, 1, kFrameMs) <= 0) return std::vector<std::string>();
  char bytes[64];
  const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (count <= 0) return {};
  return split_keys(std::string_view(bytes, static_cast<std::size_t>(count)));
}

/// The signal that asked the program to end; 0: none.
volatile std::sig_atomic_t ended_by = 0;

void watch_signals() {
  for (const int signal : {SIGTERM, SIGHUP}) std::signal(signal, [](int by) { ended_by = by; });
}

int run_live(JobReader& reader, TopUi ui) {
  Screen screen;
  watch_signals();
  Snapshot before = reader.read(kShownParts);
  TopSize size = screen_size();
  while (!ui.quit && ended_by == 0) {
    Snapshot now = reader.read(kShownParts);
    const TopSize new_size = screen_size();
    if (new_size.lines != size.lines || new_size.columns != size.columns) screen.clear();
    size = new_size;
    screen.show(frame({now, &before, explain(before, now)}, ui, size));
    const auto keys = read_keys();
    if (!keys) break;
    for (const std::string& key : *keys) press(ui, key);
    before = std::move(now);
  }
  return ended_by == 0 ? 0 : 128 + ended_by;
}

bool has_live_screen() {
  const std::string terminal = variable("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDIN_FILENO) != 0 && !terminal.empty() &&
         terminal != "dumb";
}

/// Shows frames of an actor system until the user quits or the system is gone.
int run_system_top(const std::string& asked) {
  int code = 0;
  auto before = read_asked_system(asked, code);
  if (!before) return code;
  const std::string id = before->id;
  SystemTopUi ui;
  if (!has_live_screen()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kFrameMs));
    const auto now = read_asked_system(id, code);
    if (!now) return code;
    const int lines = static_cast<int>(now->actors.size()) + 3;
    for (const std::string& line : system_frame(*now, *before, ui, lines, kPlainColumns)) {
      fmt::print("{}\n", line);
    }
    return 0;
  }
  auto screen = std::make_unique<Screen>();
  watch_signals();
  TopSize size = screen_size();
  while (!ui.quit && ended_by == 0) {
    if (find_actor_systems(id).empty()) {
      screen.reset();  // leave the other screen first, so that the reason remains visible
      read_asked_system(id, code);
      return code;
    }
    auto now = read_asked_system(id, code);
    if (!now) break;
    const TopSize new_size = screen_size();
    if (new_size.lines != size.lines || new_size.columns != size.columns) screen->clear();
    size = new_size;
    screen->show(system_frame(*now, *before, ui, size.lines, size.columns));
    const auto keys = read_keys();
    if (!keys) break;
    for (const std::string& key : *keys) press(ui, key);
    before = std::move(now);
  }
  return ended_by == 0 ? code : 128 + ended_by;
}

/// Shows frames until the user quits. On a terminal without cursor control, shows only one frame.
int run_top(JobReader& reader) {
  TopUi ui{.colours = wants_colours()};
  if (has_live_screen()) return run_live(reader, ui);
  ui.colours = false;
  const Snapshot before = reader.read(kShownParts);
  if (before.live) std::this_thread::sleep_for(std::chrono::milliseconds(kFrameMs));
  const Snapshot job = reader.read(kShownParts);
  const int lines = static_cast<int>(job.rows.size()) + 4;
  const TopSize size{.lines = lines, .columns = kPlainColumns};
  for (const std::string& line : frame({job, &before, explain(before, job)}, ui, size)) {
    fmt::print("{}\n", line);
  }
  return 0;
}

}  // namespace

void add_inspect_top(CLI::App& inspect, int& code) {
  auto job = std::make_shared<std::string>();
  CLI::App* top = inspect.add_subcommand(
      "top", "show a job's actors and mesh, or an actor system's actors, live");
  top->add_option("job", *job, kJobOrSystemHelp);
  top->callback([job, &code] {
    code = selects_system(*job) ? run_system_top(*job) : with_job(*job, run_top);
  });
}

}  // namespace weft
