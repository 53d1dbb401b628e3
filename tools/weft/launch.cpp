#include "tools/weft/launch.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/error.hpp>

#include "tools/weft/restart.hpp"

namespace weft {
namespace {

constexpr int kCannotStart = 127;

struct Options {
  std::optional<int> workers;
  int chips = 0;
  std::string topology;
  std::string mesh;
  std::optional<int> max_failures;
  std::string resume;
  std::vector<std::string> command;
};

constexpr std::array kCaughtSignals = {SIGINT, SIGTERM, SIGHUP};

/// Handlers reach only what is static.
std::atomic<pid_t> program_pid{0};

/// What a terminal sends (Ctrl-C) comes from the kernel and has reached the program too, which is
/// in the same process group; but for the hangup, that only the leader of the session gets.
void pass_on(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const bool of_terminal = info->si_code > 0;
  const bool for_leader = signal == SIGHUP && ::getsid(0) == ::getpid();
  const pid_t pid = program_pid.load();
  if (pid > 0 && (!of_terminal || for_leader)) ::kill(pid, signal);
  errno = saved;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

/// Signals that are ignored stay so (nohup), here and in the program; but for that of a child's
/// end, which nobody could wait for then.
void catch_signals() {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : kCaughtSignals) {
    if (!is_ignored(signal)) ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGCHLD, SIG_DFL);
}

/// A file in memory for the job's exit code. It has a path as long as this process lives, so that
/// nothing is left however this process ends.
class ResultFile {
 public:
  ResultFile() : fd_(::memfd_create("weft-launch-result", MFD_CLOEXEC)) {
    if (fd_ < 0) fail(Errc::io, "memfd_create: {}", std::strerror(errno));
  }
  ~ResultFile() { ::close(fd_); }
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  std::string path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_); }
  /// 0 where no job of the program failed.
  int code() const {
    std::array<char, 16> text{};
    const ssize_t size = ::pread(fd_, text.data(), text.size(), 0);
    int code = 0;
    if (size > 0) std::from_chars(text.data(), text.data() + size, code);
    return code;
  }

 private:
  int fd_;
};

void set_variables(const Options& options, const ResultFile& result) {
  if (options.workers) {
    ::setenv("WEFT_LAUNCH_WORKERS", std::to_string(*options.workers).c_str(), 1);
  }
  if (options.chips != 0) ::setenv("WEFT_LAUNCH_CHIPS", std::to_string(options.chips).c_str(), 1);
  if (!options.topology.empty()) ::setenv("WEFT_LAUNCH_TOPOLOGY", options.topology.c_str(), 1);
  if (!options.mesh.empty()) ::setenv("WEFT_LAUNCH_MESH", options.mesh.c_str(), 1);
  if (options.max_failures) {
    ::setenv("WEFT_LAUNCH_MAX_FAILURES", std::to_string(*options.max_failures).c_str(), 1);
  }
  if (!options.resume.empty()) ::setenv("WEFT_LAUNCH_RESUME", options.resume.c_str(), 1);
  ::setenv("WEFT_LAUNCH_RESULT", result.path().c_str(), 1);
}

/// The forked process, in which the signals caught are blocked.
[[noreturn]] void become_program(pid_t launcher, const sigset_t& mask, char** words) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != launcher) ::_exit(kCannotStart);
  for (const int signal : kCaughtSignals) {
    if (!is_ignored(signal)) ::signal(signal, SIG_DFL);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(words[0], words);
  fmt::print(stderr, "weft launch: can't start {}: {}\n", words[0], std::strerror(errno));
  ::_exit(kCannotStart);
}

/// No signal gets lost: those that come before the program's pid is known wait until it is.
pid_t start(char** words) {
  sigset_t caught;
  ::sigemptyset(&caught);
  for (const int signal : kCaughtSignals) ::sigaddset(&caught, signal);
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, &caught, &mask);
  catch_signals();
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail(Errc::io, "fork: {}", std::strerror(errno));
  if (pid == 0) become_program(launcher, mask, words);
  program_pid.store(pid);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  return pid;
}

/// Waits for the program's end, and leaves it unreaped: its pid may become another's then.
siginfo_t wait_for(pid_t pid) {
  siginfo_t ended;
  while (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) < 0) {
    if (errno != EINTR) fail(Errc::io, "waitid: {}", std::strerror(errno));
  }
  program_pid.store(0);
  return ended;
}

/// Whether the program ended as by a fault or the OOM killer, not because somebody asked it to.
bool was_lost(const siginfo_t& ended) {
  if (ended.si_code == CLD_EXITED) return false;
  return ended.si_status != SIGINT && ended.si_status != SIGTERM && ended.si_status != SIGHUP &&
         ended.si_status != SIGQUIT;
}

/// Whether to start a program again that was lost, and from where.
class Restarts {
 public:
  explicit Restarts(int max) : max_(max) {}

  /// Where nothing newer is saved, the program goes on from where it began.
  std::optional<GoOn> after(pid_t pid, const siginfo_t& ended) {
    if (!was_lost(ended) || (max_ >= 0 && count_ >= max_)) return {};
    const std::optional<GoOn> saved = save_job_of(pid);
    const bool has_new = saved && (!from_ || saved->step > from_->step);
    without_a_step_ = has_new ? 0 : without_a_step_ + 1;
    if (has_new) from_ = saved;
    if (!from_) return {};
    if (without_a_step_ == kWithoutAStepMax) {
      fmt::print(
          stderr,
          "weft launch: the program was killed {} times at step {}: it isn't started again\n",
          kWithoutAStepMax, from_->step);
      return {};
    }
    ++count_;
    return from_;
  }

 private:
  static constexpr int kWithoutAStepMax = 3;
  const int max_;
  int count_ = 0;
  int without_a_step_ = 0;  // deaths in a row
  std::optional<GoOn> from_;
};

int run(const Options& options) {
  const ResultFile result;
  set_variables(options, result);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  Restarts restarts(options.max_failures.value_or(0));
  for (;;) {
    const pid_t pid = start(words.data());
    const siginfo_t ended = wait_for(pid);
    const std::optional<GoOn> go_on = restarts.after(pid, ended);
    ::waitpid(pid, nullptr, 0);
    const int code = ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status;
    const int code_of_job = result.code();
    if (!go_on) return code_of_job != 0 ? code_of_job : code;
    fmt::print(stderr,
               "weft launch: {} (pid {}) was killed by SIG{}; it is started again and goes on at "
               "step {}\n",
               options.command.front(), pid, ::sigabbrev_np(ended.si_status), go_on->step);
    const std::string from = fmt::format("{}:{}", go_on->fit_number, go_on->checkpoints);
    ::setenv("WEFT_LAUNCH_GO_ON", from.c_str(), 1);
  }
}

}  // namespace

void add_launch(CLI::App& app, int& code) {
  auto options = std::make_shared<Options>();
  CLI::App* launch = app.add_subcommand("launch", "run a program's job on workers and chips");
  launch->add_option("-n,--workers", options->workers, "worker processes; 0: all in one process")
      ->check(CLI::Range(0, 256));
  launch->add_option("--chips", options->chips, "chips per worker")->check(CLI::Range(1, 256));
  launch->add_option("--topology", options->topology, "grid of all chips, as 4x4");
  launch->add_option("--mesh", options->mesh, "axes of the mesh, as data=4 or data=2,model=2");
  launch
      ->add_option("--max-failures", options->max_failures,
                   "losses of a worker that the job survives, and of the program itself, which is "
                   "started again; -1: any number")
      ->check(CLI::Range(-1, 1'000'000));
  launch->add_option("--resume", options->resume,
                     "where the job begins: never, auto, or the path of a checkpoint");
  launch->add_option("command", options->command, "the program and its arguments, after --")
      ->required();
  launch->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
