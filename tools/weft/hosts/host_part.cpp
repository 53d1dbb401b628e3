#include "tools/weft/hosts/host_part.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/link/rendezvous.hpp"
#include "data/files/file_bytes.hpp"
#include "tools/weft/launch/launched_program.hpp"
#include "transport/job/private_file.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookEvery{50};
/// The time within which the program should end by itself after its launcher has ended.
constexpr std::chrono::seconds kPatience{5};
constexpr std::size_t kFileBytesMax = 64 << 10;
/// The name under which the hosts meet. All launches use it, because each has folders of its own.
constexpr const char* kMeeting = "launch";

/// A folder that only this user can enter, for the rendezvous file.
class PrivateFolder {
 public:
  PrivateFolder() {
    const char* const base = std::getenv("XDG_RUNTIME_DIR");
    path_ = fmt::format("{}/weft-host-XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp");
    if (::mkdtemp(path_.data()) == nullptr) {
      fail(Errc::io, "can't make the folder {}: {}", path_, std::strerror(errno));
    }
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The lines that the launcher sends.
class Orders {
 public:
  /// Reads the lines that have arrived. Returns false at the end of the stream.
  bool read() {
    std::array<char, 65536> block;
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count > 0) text_.append(block.data(), static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && errno == EINTR);
  }
  std::optional<std::string> next() {
    const std::size_t end = text_.find('\n');
    if (end == text_.npos) return {};
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

 private:
  std::string text_;
};

class HostPart {
 public:
  explicit HostPart(const std::vector<std::string>& command)
      : place_{.meeting = kMeeting, .meeting_folder = folder_.path()} {
    std::optional<std::string> mark;
    while (!(mark = orders_.next())) {
      if (!orders_.read()) fail(Errc::io, "weft launch has ended before the program was started");
    }
    mark_ = *mark;
    ::setenv("WEFT_RENDEZVOUS", folder_.path().c_str(), 1);
    ::setenv("WEFT_JOB", kMeeting, 1);
    say(std::string(kReadyWord));
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    program_.emplace(command, "", Replacements{{nothing, STDIN_FILENO}});
    ::close(nothing);
  }

  int run() {
    obey_all();  // lines that came together with the mark
    const auto has = [](const char* name, std::string_view value) {
      const char* const text = std::getenv(name);
      return text != nullptr && text == value;
    };
    is_host_0_ = has("WEFT_HOST_INDEX", "0");
    looks_ = is_host_0_ && !has("WEFT_HOSTS", "1");
    while (!has_ended()) turn();
    return exit_code(program_->wait());
  }

 private:
  bool has_ended() const {
    pollfd end{.fd = program_->pidfd(), .events = POLLIN, .revents = 0};
    return ::poll(&end, 1, 0) > 0;
  }

  void turn() {
    std::array<pollfd, 2> waits{
        {{.fd = program_->pidfd(), .events = POLLIN, .revents = 0},
         {.fd = is_alone_ ? -1 : STDIN_FILENO, .events = POLLIN, .revents = 0}}};
    const bool is_timed = looks_ || kill_at_;
    ::poll(waits.data(), waits.size(), is_timed ? static_cast<int>(kLookEvery.count()) : -1);
    if (waits[1].revents != 0 && !orders_.read()) lose_launcher();
    obey_all();
    if (looks_) tell_file();
    if (kill_at_ && Clock::now() >= *kill_at_) program_->send(SIGKILL);
  }

  void obey_all() {
    while (const auto line = orders_.next()) obey(*line);
  }

  void obey(const std::string& line) {
    if (line.starts_with(kFileWord)) {
      const std::string path = folder_.path() + "/" + rendezvous_name(place_);
      replace_private_file(path, line.substr(kFileWord.size()));
    } else if (line.starts_with(kSignalWord)) {
      program_->send(line.substr(kSignalWord.size()) == "TERM" ? SIGTERM : SIGINT);
    }
  }

  void tell_file() {
    const std::string path = folder_.path() + "/" + rendezvous_name(place_);
    const auto text = find_file_text(path, kFileBytesMax);
    if (!text) return;
    looks_ = false;
    say(std::string(kFileWord) + *text);
  }

  /// Ends the program because the launcher has ended: on host 0 as Ctrl-C does, so that the job
  /// ends; on another host as if that host was lost.
  void lose_launcher() {
    is_alone_ = true;
    program_->send(is_host_0_ ? SIGINT : SIGHUP);
    kill_at_ = Clock::now() + kPatience;
  }

  void say(const std::string& words) const {
    fmt::print("{}{}\n", mark_, words);
    std::fflush(stdout);
  }

  const PrivateFolder folder_;
  const HostPlace place_;
  Orders orders_;
  std::string mark_;
  std::optional<LaunchedProgram> program_;
  bool looks_ = false;  ///< waits for the file that the program of host 0 writes
  bool is_host_0_ = false;
  bool is_alone_ = false;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace

void add_host_part(CLI::App& app, int& code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("host-part", "a host's half of weft launch --hosts");
  command->group("");  // not shown in the help
  command->positionals_at_end();
  command->add_option("command", *words, "the program and its arguments")->required();
  command->callback([words, &code] { code = HostPart(*words).run(); });
}

}  // namespace weft
