#include <weft/actors/trainer/worker_process.hpp>

#include <fcntl.h>
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

#include <weft/actors/worker/environment.hpp>
#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// A longer line is passed on in pieces.
constexpr std::size_t kLineBytesMax = 65536;

/// The words of this process's command line.
std::vector<std::string> own_arguments() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& variables) {
  std::vector<std::string> merged = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& variable : variables) replaced |= variable.starts_with(name);
    if (!replaced) merged.emplace_back(text);
  }
  return merged;
}

/// Processes that the kernel has killed for want of memory; 0 where it doesn't say.
long oom_kills() {
  std::ifstream in("/proc/vmstat");
  std::string name;
  for (long count = 0; in >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

/// Closed on destruction, but for an end that was taken.
struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(Errc::io, "pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writer() const { return ends[1]; }
  /// The end to read from, which doesn't block.
  int take_reader() {
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return std::exchange(ends[0], -1);
  }

  std::array<int, 2> ends{-1, -1};
};

/// Between fork and exec: only async-signal-safe calls.
[[noreturn]] void exec_copy(pid_t parent, int out, int err, char** arguments, char** variables) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::dup2(out, kWorkerStdout);
  ::fcntl(kWorkerStdout, F_SETFD, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execve("/proc/self/exe", arguments, variables);
  for (const char* part :
       {"weft: can't start a copy of this program: execve: ", ::strerrordesc_np(errno), "\n"}) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, part, std::strlen(part));
  }
  ::_exit(127);
}

}  // namespace

WorkerProcess::WorkerProcess(int worker, const std::vector<std::string>& variables, Outlet& out,
                             Outlet& err)
    : worker_(worker), oom_kills_(oom_kills()) {
  std::vector<std::string> words = own_arguments();
  std::vector<std::string> environment = merged_environment(variables);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);
  Pipe out_pipe;
  Pipe err_pipe;
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail(Errc::io, "can't start worker {}: fork: {}", worker, std::strerror(errno));
  if (pid_ == 0) {
    exec_copy(parent, out_pipe.writer(), err_pipe.writer(), const_cast<char**>(argv.data()),
              const_cast<char**>(envp.data()));
  }
  running_ = true;
  out_ = {.fd = out_pipe.take_reader(), .to = &out, .line = {}};
  err_ = {.fd = err_pipe.take_reader(), .to = &err, .line = {}};
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
  // The group exists once the child has come as far as setpgid().
  if (::kill(-pid_, SIGKILL) != 0) ::kill(pid_, SIGKILL);
}

void WorkerProcess::ask_for_stack() const {
  if (running_) ::syscall(SYS_tgkill, pid_, pid_, SIGQUIT);
}

ProcessEnded WorkerProcess::reap() {
  // What the worker has started ends with it; until it is reaped, its group is surely its own.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  running_ = false;
  for (Stream* stream : {&out_, &err_}) {
    while (read_block(*stream)) {
    }
    finish(*stream);
  }
  return {.worker = worker_,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
          .out_of_memory = oom_kills() > oom_kills_};
}

void WorkerProcess::pump() {
  for (Stream* stream : {&out_, &err_}) {
    while (wanted(*stream) >= 0 && read_block(*stream)) {
    }
  }
}

/// False where there is nothing to read now, or will be never.
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
  std::string tagged;
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
    tagged += fmt::format("[worker {}] {}{}\n", worker_, stream.line, rest.substr(0, end));
    stream.line.clear();
  }
  stream.line += rest;
  if (stream.line.size() > kLineBytesMax) {
    tagged += fmt::format("[worker {}] {}\n", worker_, std::exchange(stream.line, {}));
  }
  stream.to->write(tagged);
  return true;
}

void WorkerProcess::finish(Stream& stream) {
  if (stream.fd < 0) return;
  if (!stream.line.empty()) {
    stream.to->write(fmt::format("[worker {}] {}\n", worker_, std::exchange(stream.line, {})));
  }
  ::close(std::exchange(stream.fd, -1));
}

}  // namespace weft
