#include "tools/weft/hosts/launch_hosts.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tools/weft/hosts/host_connection.hpp"
#include "tools/weft/hosts/host_part.hpp"
#include "tools/weft/launch/shell_word.hpp"
#include "transport/job/private_file.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The time within which the other hosts should end by themselves after host 0 has ended.
constexpr std::chrono::seconds kEndPatience{20};
/// The time after which a connection that was closed counts as stuck.
constexpr std::chrono::seconds kKillPatience{10};
/// A start is in vain if the program ends sooner than this.
constexpr std::chrono::seconds kSoon{5};
/// The pause before the next start, for each start in vain; at most kLongestPause in all.
constexpr std::chrono::seconds kPauseAfterVain{1};
constexpr std::chrono::seconds kLongestPause{10};
/// The exit code if the program wasn't started on some host.
constexpr int kNotBegun = 1;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Blocks the signals that ask this process to end; a descriptor (signalfd) delivers them.
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
  /// Returns the next signal; 0 if there is none.
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
      : options_(options), hosts_(options.hosts.size()), programs_(options.hosts.size()) {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      programs_[i].machine = i;
      start(i);
    }
  }

  int run() {
    while (goes_on()) turn();
    return not_begun_ ? kNotBegun : *hosts_.front()->code();
  }

 private:
  bool goes_on() const {
    const bool some_run =
        std::ranges::any_of(hosts_, [](const auto& host) { return !host->code(); });
    return some_run ||
           std::ranges::any_of(programs_, [](const Program& p) { return p.start_at.has_value(); });
  }

  /// The state of the program of one host.
  struct Program {
    std::size_t machine = 0;  ///< the index of the host on which it runs, usually its own host
    Clock::time_point started{};
    int in_vain = 0;  ///< consecutive starts in vain
    std::optional<Clock::time_point> start_at{};
  };

  void start(std::size_t i) {
    Program& program = programs_[i];
    program.started = Clock::now();
    program.start_at.reset();
    const std::string& host = options_.hosts[program.machine];
    std::vector<std::string> words = words_of(options_.via);
    words.push_back(host);
    words.push_back(host_command(options_, static_cast<int>(i), weft_));
    const bool is_only = std::ranges::count(options_.hosts, host) == 1 && program.machine == i;
    hosts_[i] = std::make_unique<HostConnection>(is_only ? host : fmt::format("{}:{}", host, i),
                                                 std::move(words), mark_);
    if (i > 0 && !file_.empty()) hosts_[i]->send(std::string(kFileWord) + file_);
  }

  bool job_runs() const {
    return !file_.empty() && !hosts_.front()->code() && !hang_up_at_ && !not_begun_;
  }

  /// Starts a program again that has ended while the job runs. If its machine can't be reached,
  /// another machine takes the program over.
  void start_again(std::size_t i) {
    Program& program = programs_[i];
    const HostConnection& ended = *hosts_[i];
    const bool is_soon = Clock::now() - program.started < kSoon;
    program.in_vain = is_soon ? program.in_vain + 1 : 0;
    const auto other = ended.has_begun() ? std::nullopt : other_machine(program.machine);
    fmt::print(stderr, "weft launch: {}: {} with exit code {}: the program is started again{}\n",
               ended.tag(),
               ended.has_begun() ? "the program has ended" : "the connection has ended",
               *ended.code(), other ? " on " + options_.hosts[*other] : "");
    program.start_at = Clock::now() + std::min(program.in_vain * kPauseAfterVain, kLongestPause);
    if (!other) return;
    program.machine = *other;
    program.in_vain = 0;
    program.start_at = Clock::now();
  }

  /// Returns the machine with the fewest programs, except `lost` and machines lost before; nothing
  /// if fewer than --min-hosts machines remain.
  std::optional<std::size_t> other_machine(std::size_t lost) {
    lost_.insert(options_.hosts[lost]);
    std::map<std::string, int> counts;
    for (const std::string& host : options_.hosts) {
      if (!lost_.contains(host)) counts[host] = 0;
    }
    if (options_.min_hosts == 0 || static_cast<int>(counts.size()) < options_.min_hosts) return {};
    for (const Program& program : programs_) {
      const auto found = counts.find(options_.hosts[program.machine]);
      if (found != counts.end()) ++found->second;
    }
    const auto least =
        std::ranges::min_element(counts, {}, [](const auto& machine) { return machine.second; });
    return static_cast<std::size_t>(std::ranges::find(options_.hosts, least->first) -
                                    options_.hosts.begin());
  }

  void turn() {
    std::vector<pollfd> waits{{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    for (const auto& host : hosts_) host->add_to(waits);
    ::poll(waits.data(), waits.size(), milliseconds_left());
    while (const int signal = signals_.take()) {
      // A signal asks host 0 to end the job. If host 0 has ended, or was asked twice before, the
      // connections are useless.
      if (hosts_.front()->code() || ++signals_taken_ > 2) kill();
      hosts_.front()->send(std::string(kSignalWord) + (signal == SIGTERM ? "TERM" : "INT"));
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      serve(i);
      const auto& start_at = programs_[i].start_at;
      if (start_at && !job_runs()) programs_[i].start_at.reset();
      if (start_at && Clock::now() >= *start_at) start(i);
    }
    if (hang_up_at_ && Clock::now() >= *hang_up_at_) hang_up();
    if (kill_at_ && Clock::now() >= *kill_at_) kill();
  }

  int milliseconds_left() const {
    std::optional<Clock::time_point> next = hang_up_at_ ? hang_up_at_ : kill_at_;
    for (const Program& program : programs_) {
      if (program.start_at) next = std::min(next.value_or(*program.start_at), *program.start_at);
    }
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
    return static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count());
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
    const bool survives = options_.max_failures.value_or(0) != 0 && *host.code() != 0;
    if (number == 0) {
      if (host.has_begun()) hang_up_at_ = Clock::now() + kEndPatience;
    } else if (survives && job_runs()) {
      return start_again(number);
    }
    if (host.has_begun()) return;
    fmt::print(stderr,
               "weft launch: {}: the command of --via ended with exit code {} before the program "
               "began: the host must let this user in without a password, and have the program, "
               "the weft command and the current folder at the same paths as this machine\n",
               host.tag(), *host.code());
    not_begun_ = true;
    hang_up();
  }

  void hang_up() {
    hang_up_at_.reset();
    kill_at_ = Clock::now() + kKillPatience;
    for (const auto& host : hosts_) host->hang_up();
  }

  void kill() {
    kill_at_.reset();
    for (const auto& host : hosts_) host->kill();
  }

  const LaunchOptions& options_;
  const std::string weft_ = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string mark_ = "weft-" + random_hex(16);
  const EndSignals signals_;
  std::vector<std::unique_ptr<HostConnection>> hosts_;
  std::vector<Program> programs_;  ///< index: the host
  std::set<std::string> lost_;     ///< machines that couldn't be reached
  std::string file_;               ///< the text of the rendezvous file, from host 0
  bool not_begun_ = false;
  std::optional<Clock::time_point> hang_up_at_;
  std::optional<Clock::time_point> kill_at_;
  int signals_taken_ = 0;
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
  const auto machines = std::set(options.hosts.begin(), options.hosts.end()).size();
  if (static_cast<std::size_t>(options.min_hosts) > machines) {
    fail(Errc::invalid_argument,
         "--min-hosts {}: expected at most {}, the number of different hosts in --hosts",
         options.min_hosts, machines);
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
