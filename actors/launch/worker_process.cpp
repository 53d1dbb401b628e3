#include "actors/launch/worker_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/link/environment.hpp"

namespace weft {
namespace {

/// The limit on blocks that are read from a stream at a time, so that a worker that prints without
/// end doesn't block the other workers.
constexpr int kBlocksAtOnce = 8;
/// The limit on a line's length. A longer line is passed on in pieces.
constexpr std::size_t kLineBytesMax = 65536;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// Returns the number of processes that the kernel has killed for lack of memory; 0 if unknown.
long oom_kills() {
  std::ifstream in("/proc/vmstat");
  std::string name;
  for (long count = 0; in >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

/// A pipe. The destructor closes the ends that the caller hasn't taken.
struct OutputPipe {
  OutputPipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(Errc::io, "pipe: {}", std::strerror(errno));
  }
  ~OutputPipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  int writer() const { return ends[1]; }
  /// Returns the end for reading, made non-blocking.
  int take_reader() {
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return std::exchange(ends[0], -1);
  }

  std::array<int, 2> ends{-1, -1};
};

/// The arguments of the code that runs in the child. They are complete before the child exists.
struct Child {
  pid_t parent;
  bool has_stdin;  ///< whether the child gets the parent's stdin
  int out;
  int err;
  const char* folder;
  const char* path;
  char** arguments;
  char** variables;
  const cpu_set_t* cpus;  ///< null: the CPUs stay unchanged
};

[[noreturn]] void give_up(const char* what) {
  for (const char* part :
       {"weft: can't start a worker: ", what, ": ", ::strerrordesc_np(errno), "\n"}) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, part, std::strlen(part));
  }
  ::_exit(127);
}

/// The child's code between vfork and exec. It runs in the memory of the parent, whose thread waits
/// with all signals blocked. Therefore it makes only async-signal-safe calls and changes nothing in
/// that memory.
[[noreturn]] void exec_worker(const Child& child) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != child.parent) ::_exit(127);
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(child.err, STDERR_FILENO);
  // kWorkerStdout and kWorkerStdin may be the numbers of descriptors that were used above, so they
  // are overwritten last.
  ::dup2(child.out, kWorkerStdout);
  ::fcntl(kWorkerStdout, F_SETFD, 0);
  ::dup2(child.has_stdin ? STDIN_FILENO : STDOUT_FILENO, kWorkerStdin);
  ::fcntl(kWorkerStdin, F_SETFD, 0);
  ::dup2(STDOUT_FILENO, STDIN_FILENO);
  // Workers must not inherit the program's open files, such as a server's port.
  ::close_range(kWorkerStdin + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  if (::chdir(child.folder) != 0) give_up(child.folder);
  if (child.cpus != nullptr && ::sched_setaffinity(0, sizeof *child.cpus, child.cpus) != 0) {
    give_up("scaling.affinity");
  }
  // The child shares the parent's memory, so the parent's handlers must not run in the child when
  // signals are unblocked.
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    ::signal(signal, SIG_DFL);
  }
  for (const int signal : {SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(child.path, child.arguments, child.variables);
  give_up(child.path);
}

/// Starts the child by vfork(), because fork() copies the page tables, which takes tens of
/// milliseconds for a large program.
pid_t start(const Child& child) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) exec_worker(child);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

cpu_set_t set_of(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  return set;
}

}  // namespace

WorkerProcess::WorkerProcess(int worker, const WorkerCommand& command,
                             const std::vector<std::string>& variables, WorkerOutput output)
    : worker_(worker), oom_kills_(oom_kills()), output_(std::move(output)) {
  const std::string path = command.path();
  std::vector<std::string> words = command.words(worker);
  std::vector<std::string> environment = command.environment(variables);
  std::vector<char*> argv = pointers(words);
  std::vector<char*> envp = pointers(environment);
  const cpu_set_t cpus = set_of(command.cpus(worker));
  OutputPipe out_pipe;
  OutputPipe err_pipe;
  pid_ = start({.parent = ::getpid(),
                .has_stdin = command.gives_stdin(worker),
                .out = out_pipe.writer(),
                .err = err_pipe.writer(),
                .folder = command.folder().c_str(),
                .path = path.c_str(),
                .arguments = argv.data(),
                .variables = envp.data(),
                .cpus = command.cpus(worker).empty() ? nullptr : &cpus});
  if (pid_ < 0) fail(Errc::io, "can't start worker {}: vfork: {}", worker, std::strerror(errno));
  running_ = true;
  out_ = {.fd = out_pipe.take_reader(), .to = output_.out, .line = {}, .tagged = {}};
  err_ = {.fd = err_pipe.take_reader(), .to = output_.err, .line = {}, .tagged = {}};
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) {
    const std::string why = std::strerror(errno);
    kill();
    reap();
    fail(Errc::io, "can't watch worker {} (pid {}): pidfd_open: {}", worker, pid_, why);
  }
}

WorkerProcess::~WorkerProcess() {
  if (running_) {
    kill();
    reap();
  }
  if (pidfd_ >= 0) ::close(pidfd_);
}

void WorkerProcess::kill() const {
  if (!running_) return;
  ::syscall(SYS_pidfd_send_signal, pidfd_, SIGKILL, nullptr, 0);
  kill_group();
}

/// Kills all processes in the worker's process group. The group's number, the worker's pid, is
/// certainly in use until the worker is reaped. If the program has reaped the worker itself,
/// another group may have the number, so nothing is killed.
void WorkerProcess::kill_group() const {
  siginfo_t ignored{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &ignored, WEXITED | WNOHANG | WNOWAIT) == 0) {
    ::kill(-pid_, SIGKILL);
  }
}

void WorkerProcess::ask_for_stack() const {
  if (running_) ::syscall(SYS_tgkill, pid_, pid_, SIGQUIT);
}

ProcessEnded WorkerProcess::reap() {
  kill_group();
  int status = 0;
  pid_t reaped = -1;
  while ((reaped = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  running_ = false;
  for (Stream* stream : {&out_, &err_}) {
    for (int i = 0; i < kBlocksAtOnce && read_block(*stream); ++i) {
    }
    finish(*stream);
  }
  return {.worker = worker_,
          .pid = pid_,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
          .out_of_memory = oom_kills() > oom_kills_,
          .status_taken = reaped < 0};
}

void WorkerProcess::pump() {
  for (Stream* stream : {&out_, &err_}) {
    for (int i = 0; i < kBlocksAtOnce && wanted(*stream) >= 0 && read_block(*stream); ++i) {
    }
  }
}

/// Reads a block and passes on the lines in it. Returns false if there is nothing to read now, or
/// if the stream has ended.
bool WorkerProcess::read_block(Stream& stream) {
  if (stream.fd < 0) return false;
  std::array<char, 65536> block;
  const ssize_t count = ::read(stream.fd, block.data(), block.size());
  if (count < 0) return errno == EINTR;
  if (count == 0) {
    finish(stream);
    return false;
  }
  std::string_view rest(block.data(), static_cast<std::size_t>(count));
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
    give(stream, rest.substr(0, end));
  }
  stream.line += rest;
  if (stream.line.size() > kLineBytesMax) give(stream, "");
  write(stream);
  return true;
}

void WorkerProcess::write(Stream& stream) {
  if (!stream.tagged.empty()) stream.to->write(std::exchange(stream.tagged, {}));
}

/// Passes on the stream's unfinished line together with `line`, which completes it.
void WorkerProcess::give(Stream& stream, std::string_view line) {
  stream.line += line;
  if (output_.lines) {
    output_.lines(worker_, &stream == &err_, stream.line);
  } else {
    stream.tagged += fmt::format("[{} {}] {}\n", output_.who, worker_, stream.line);
  }
  stream.line.clear();
}

void WorkerProcess::finish(Stream& stream) {
  if (stream.fd < 0) return;
  if (!stream.line.empty()) give(stream, "");
  write(stream);
  ::close(std::exchange(stream.fd, -1));
}

}  // namespace weft
