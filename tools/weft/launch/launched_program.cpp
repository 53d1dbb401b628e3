#include "tools/weft/launch/launched_program.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr int kCannotStart = 127;
constexpr std::array kCaughtSignals = {SIGINT, SIGTERM, SIGHUP};

/// The pid of the program, or 0. It is a global variable because a signal handler has no other
/// access to it.
std::atomic<pid_t> program_pid{0};

/// Passes a signal on to the program. The terminal's signals (Ctrl-C) aren't passed on, because the
/// program is in the same process group and gets them itself. SIGHUP is always passed on, because
/// the terminal sends it only to the leader of the session.
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

/// Installs pass_on(). Signals that are ignored (nohup) stay ignored, here and in the program. But
/// SIGCHLD isn't left ignored, because then a process couldn't wait for the end of a child.
void catch_signals() {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : kCaughtSignals) {
    if (!is_ignored(signal)) ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGCHLD, SIG_DFL);
}

[[noreturn]] void give_up(const char* doing, const char* what) {
  fmt::print(stderr, "weft launch: can't {} {}: {}\n", doing, what, std::strerror(errno));
  ::_exit(kCannotStart);
}

/// Runs in the child between vfork and exec, in the memory of this process, which is waiting. The
/// caught signals are blocked.
[[noreturn]] void become(char** words, const std::string& folder, const Replacements& replacements,
                         pid_t launcher, const sigset_t& mask) {
  // Kills the program when the launcher dies; its workers end with it, even if they are stopped.
  // With SIGTERM instead, they would save a checkpoint for up to run.grace_s, which a user who
  // killed the launcher wouldn't expect.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(kCannotStart);
  for (const int signal : kCaughtSignals) {
    if (!is_ignored(signal)) ::signal(signal, SIG_DFL);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  for (const auto& [from, to] : replacements) ::dup2(from, to);
  if (!folder.empty() && ::chdir(folder.c_str()) != 0) give_up("go to", folder.c_str());
  ::execvp(words[0], words);
  give_up("start", words[0]);
}

}  // namespace

/// Starts the program. Signals that arrive before its pid is known stay blocked until then, so that
/// no signal is lost.
LaunchedProgram::LaunchedProgram(const std::vector<std::string>& command, const std::string& folder,
                                 const Replacements& replacements) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  sigset_t caught;
  ::sigemptyset(&caught);
  for (const int signal : kCaughtSignals) ::sigaddset(&caught, signal);
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, &caught, &mask);
  catch_signals();
  const pid_t launcher = ::getpid();
  pid_ = ::vfork();
  if (pid_ < 0) fail(Errc::io, "vfork: {}", std::strerror(errno));
  if (pid_ == 0) become(words.data(), folder, replacements, launcher, mask);
  program_pid.store(pid_);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) fail(Errc::io, "pidfd_open: {}", std::strerror(errno));
}

LaunchedProgram::~LaunchedProgram() {
  program_pid.store(0);
  if (pidfd_ >= 0) ::close(pidfd_);
  ::waitpid(pid_, nullptr, 0);
}

void LaunchedProgram::send(int signal) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0);
}

siginfo_t LaunchedProgram::wait() const {
  siginfo_t ended;
  while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) < 0) {
    if (errno != EINTR) fail(Errc::io, "waitid: {}", std::strerror(errno));
  }
  program_pid.store(0);
  return ended;
}

int exit_code(const siginfo_t& ended) {
  return ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status;
}

}  // namespace weft
