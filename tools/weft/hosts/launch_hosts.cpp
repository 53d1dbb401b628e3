#include "tools/weft/hosts/launch_hosts.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tools/weft/hosts/host_part.hpp"
#include "tools/weft/launch/launched_program.hpp"
#include "tools/weft/launch/shell_word.hpp"
#include "transport/job/private_file.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The time that the other hosts have to end by themselves after host 0.
constexpr std::chrono::seconds kEndPatience{20};
/// A program that ends so soon after its start counts as started in vain, and the limit of such
/// starts in a row.
constexpr std::chrono::seconds kSoon{5};
constexpr int kStartsInVainMax = 5;
/// The exit code if a host didn't begin.
constexpr int kNotBegun = 1;
/// The exit code of the host's half, as of a shell, if there is no such program.
constexpr int kCannotStart = 127;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

/// The connection to a host: a process whose standard streams are those of the host's half.
class HostConnection {
 public:
  HostConnection(std::string tag, std::vector<std::string> command, std::string mark)
      : tag_(std::move(tag)), mark_(std::move(mark)) {
    std::array<std::array<int, 2>, 3> pipes{};
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (::pipe2(pipes[i].data(), O_CLOEXEC) != 0) {
        fail(Errc::io, "pipe: {}", std::strerror(errno));
      }
      const int end = static_cast<int>(i);
      ::posix_spawn_file_actions_adddup2(&files, pipes[i][i == 0 ? 0 : 1], end);
    }
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    // A Ctrl-C at the terminal must not end the connection, by which it is passed on.
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    ::sigaddset(&signals, SIGPIPE);  // this process ignores it
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    const int error = ::posix_spawnp(&pid_, words[0], &files, &attributes, words.data(), ::environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    for (std::size_t i = 0; i < pipes.size(); ++i) ::close(pipes[i][i == 0 ? 0 : 1]);
    in_ = pipes[0][1];
    out_ = {pipes[1][0], pipes[2][0]};
    if (error != 0) {
      fail(Errc::not_found, "--via: can't start {}: {}; name a command such as ssh", command[0],
           std::strerror(error));
    }
    for (const int fd : out_) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    send(mark_);
  }
  ~HostConnection() {
    close_fd(in_);
    for (int& fd : out_) close_fd(fd);
    if (!code_) ::waitpid(pid_, nullptr, 0);
  }
  HostConnection(const HostConnection&) = delete;
  HostConnection& operator=(const HostConnection&) = delete;

  /// Sends a line, or nothing if the host no longer reads.
  void send(const std::string& line) {
    const std::string text = line + '\n';
    if (in_ >= 0 && ::write(in_, text.data(), text.size()) < 0) close_fd(in_);
  }
  /// Ends the program on the host.
  void hang_up() { close_fd(in_); }

  void add_to(std::vector<pollfd>& waits) const {
    for (const int fd : out_) waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
  /// Shows the lines that have come. Returns the rendezvous file if the host has told it.
  std::optional<std::string> serve() {
    std::optional<std::string> file;
    for (std::size_t i = 0; i < out_.size(); ++i) {
      read(i);
      std::string& text = text_[i];
      for (std::size_t end; (end = text.find('\n')) != text.npos;) {
        std::string line = text.substr(0, end);
        text.erase(0, end + 1);
        if (i == 0 && take_words(line, file)) {
          text.insert(0, line);  // the beginning of a line of the program
          continue;
        }
        show(i, line);
      }
      if (out_[i] < 0 && !text.empty()) show(i, std::exchange(text, {}));
    }
    if (out_[0] < 0 && out_[1] < 0 && !code_) reap();
    return file;
  }

  const std::string& tag() const { return tag_; }
  bool is_ready() const { return ready_; }
  /// The exit code, once the connection has ended.
  const std::optional<int>& code() const { return code_; }

 private:
  void read(std::size_t i) {
    std::array<char, 65536> block;
    while (out_[i] >= 0) {
      const ssize_t count = ::read(out_[i], block.data(), block.size());
      if (count > 0) text_[i].append(block.data(), static_cast<std::size_t>(count));
      if (count < 0 && errno == EAGAIN) return;
      if (count == 0 || (count < 0 && errno != EINTR)) close_fd(out_[i]);
    }
  }

  /// Takes the words of the host's half from the line. Returns false if there are none.
  bool take_words(std::string& line, std::optional<std::string>& file) {
    const std::size_t at = line.find(mark_);
    if (at == line.npos) return false;
    const std::string words = line.substr(at + mark_.size());
    if (words == kReadyWord) ready_ = true;
    if (words.starts_with(kFileWord)) file = words.substr(kFileWord.size());
    line.erase(at);
    return true;
  }

  void show(std::size_t stream, const std::string& line) const {
    std::FILE* const to = stream == 0 ? stdout : stderr;
    fmt::print(to, "[{}] {}\n", tag_, line);
    std::fflush(to);
  }

  void reap() {
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED) < 0 && errno == EINTR) {
    }
    code_ = exit_code(ended);
  }

  const std::string tag_;
  const std::string mark_;
  pid_t pid_ = -1;
  int in_ = -1;
  std::array<int, 2> out_{-1, -1};
  std::array<std::string, 2> text_;
  bool ready_ = false;
  std::optional<int> code_;
};

/// A descriptor from which the signals that ask this process to end are read.
class EndSignals {
 public:
  EndSignals() {
    sigset_t caught;
    ::sigemptyset(&caught);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&caught, signal);
    ::sigprocmask(SIG_BLOCK, &caught, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    fd_ = ::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) fail(Errc::io, "signalfd: {}", std::strerror(errno));
  }
  ~EndSignals() { ::close(fd_); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  int fd() const { return fd_; }
  /// Returns 0 if there is none.
  int take() const {
    signalfd_siginfo info{};
    return ::read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  int fd_;
};

class HostLaunch {
 public:
  explicit HostLaunch(const LaunchOptions& options)
      : options_(options), hosts_(options.hosts.size()), starts_(options.hosts.size()) {
    for (std::size_t i = 0; i < hosts_.size(); ++i) start(i);
  }

  int run() {
    while (std::ranges::any_of(hosts_, [](const auto& host) { return !host->code(); })) turn();
    return not_begun_ ? kNotBegun : *hosts_.front()->code();
  }

 private:
  /// The starts of a host's program.
  struct Starts {
    Clock::time_point last{};
    int in_vain = 0;  ///< in a row
  };

  void start(std::size_t i) {
    const std::string& host = options_.hosts[i];
    std::vector<std::string> words = words_of(options_.via);
    words.push_back(host);
    words.push_back(host_command(options_, static_cast<int>(i), weft_));
    const bool is_only = std::ranges::count(options_.hosts, host) == 1;
    hosts_[i] = std::make_unique<HostConnection>(is_only ? host : fmt::format("{}:{}", host, i),
                                                 std::move(words), mark_);
    starts_[i].last = Clock::now();
    if (i > 0 && !file_.empty()) hosts_[i]->send(std::string(kFileWord) + file_);
  }

  /// Starts the program again on a host where it has ended during the job, if the job survives
  /// losses.
  void start_again(std::size_t i) {
    const bool survives = options_.max_failures.value_or(0) != 0;
    const bool runs = !hosts_.front()->code() && !hang_up_at_ && !file_.empty();
    if (i == 0 || !survives || !runs || *hosts_[i]->code() == 0) return;
    const bool is_soon = Clock::now() - starts_[i].last < kSoon;
    starts_[i].in_vain = is_soon ? starts_[i].in_vain + 1 : 0;
    if (starts_[i].in_vain == kStartsInVainMax) {
      fmt::print(stderr,
                 "weft launch: {}: the program has ended soon after its start {} times in a "
                 "row, so it isn't started again\n",
                 hosts_[i]->tag(), kStartsInVainMax);
      return;
    }
    fmt::print(stderr,
               "weft launch: {}: the program has ended with exit code {}, and is started "
               "again\n",
               hosts_[i]->tag(), *hosts_[i]->code());
    start(i);
  }

  void turn() {
    std::vector<pollfd> waits{{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    for (const auto& host : hosts_) host->add_to(waits);
    int left = -1;
    if (hang_up_at_) {
      const auto time = std::chrono::ceil<std::chrono::milliseconds>(*hang_up_at_ - Clock::now());
      left = static_cast<int>(std::max(time, std::chrono::milliseconds(0)).count());
    }
    ::poll(waits.data(), waits.size(), left);
    while (const int signal = signals_.take()) {
      hosts_.front()->send(std::string(kSignalWord) + (signal == SIGTERM ? "TERM" : "INT"));
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) serve(i);
    if (hang_up_at_ && Clock::now() >= *hang_up_at_) {
      hang_up_at_.reset();
      hang_up();
    }
  }

  void serve(std::size_t number) {
    HostConnection& host = *hosts_[number];
    const bool had_ended = host.code().has_value();
    if (const auto file = host.serve()) {
      file_ = *file;
      for (std::size_t i = 1; i < hosts_.size(); ++i) {
        hosts_[i]->send(std::string(kFileWord) + file_);
      }
    }
    if (had_ended || !host.code()) return;
    const bool has_begun = host.is_ready() && *host.code() != kCannotStart;
    if (!has_begun) {
      fmt::print(stderr,
                 "weft launch: {}: the command of --via ended with exit code {} before the program "
                 "began: the host must let this user in without a password, and have the program, "
                 "the weft command and the current folder at the same paths as this machine\n",
                 host.tag(), *host.code());
      not_begun_ = true;
      hang_up();
    } else if (number == 0) {
      hang_up_at_ = Clock::now() + kEndPatience;
    } else {
      start_again(number);
    }
  }

  void hang_up() {
    for (const auto& host : hosts_) host->hang_up();
  }

  const LaunchOptions& options_;
  const std::string weft_ = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string mark_ = "weft-" + random_hex(16);
  const EndSignals signals_;
  std::vector<std::unique_ptr<HostConnection>> hosts_;
  std::vector<Starts> starts_;  ///< by host
  std::string file_;            ///< the rendezvous file that host 0 has told
  bool not_begun_ = false;
  std::optional<Clock::time_point> hang_up_at_;
};

void refuse(bool is_given, const char* option, const char* remedy) {
  if (!is_given) return;
  fail(Errc::invalid_argument, "{} with --hosts isn't available in this version: {}", option,
       remedy);
}

void check_options(const LaunchOptions& options) {
  if (words_of(options.via).empty()) {
    fail(Errc::invalid_argument, "--via \"{}\": expected a command, such as ssh", options.via);
  }
  for (const std::string& host : options.hosts) {
    if (!host.empty() && !host.starts_with('-')) continue;
    fail(Errc::invalid_argument, "--hosts \"{}\": expected the names of hosts, such as h1,h2",
         host);
  }
  refuse(options.timeout_s > 0, "--timeout", "run `timeout 3600 weft launch ...`");
  refuse(!options.only.empty(), "--only", "leave it out");
  refuse(!options.log_dir.empty(), "--log-dir", "each host writes its logs into the run folder");
  refuse(options.timestamps, "--timestamps", "leave it out");
}

}  // namespace

std::string host_command(const LaunchOptions& options, int index, const std::string& weft) {
  const std::string folder =
      options.folder.empty() ? std::filesystem::current_path().string() : options.folder;
  std::string text = fmt::format("cd {} && exec env WEFT_HOSTS={} WEFT_HOST_INDEX={} ",
                                 shell_word(folder), options.hosts.size(), index);
  for (const auto& [name, value] : variables_of(options)) {
    if (name == "PWD" || name == "WEFT_LAUNCH_STDIN") continue;
    text += fmt::format("{} ", shell_word(name + "=" + value));
  }
  text += shell_word(weft) + " host-part --";
  for (const std::string& word : options.command) text += ' ' + shell_word(word);
  return text;
}

int launch_on_hosts(const LaunchOptions& options) {
  check_options(options);
  if (!options.dry_run) return HostLaunch(options).run();
  for (std::size_t i = 0; i < options.hosts.size(); ++i) {
    fmt::print("{} {} {}\n", options.via, options.hosts[i],
               shell_word(host_command(options, static_cast<int>(i), "weft")));
  }
  return 0;
}

}  // namespace weft
