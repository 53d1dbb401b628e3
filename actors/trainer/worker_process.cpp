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

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(Errc::io, "pipe: {}", std::strerror(errno));
  }
};

/// Between fork and exec: only async-signal-safe calls.
[[noreturn]] void become_worker(pid_t parent, int out, int err, char** arguments,
                                char** variables) {
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
  ::_exit(127);
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

WorkerProcess::WorkerProcess(int worker, const std::vector<std::string>& variables)
    : worker_(worker) {
  std::vector<std::string> words = own_arguments();
  std::vector<std::string> environment = merged_environment(variables);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);
  const Pipe out;
  const Pipe err;
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail(Errc::io, "can't start worker {}: fork: {}", worker, std::strerror(errno));
  if (pid_ == 0) {
    become_worker(parent, out.ends[1], err.ends[1], const_cast<char**>(argv.data()),
                  const_cast<char**>(envp.data()));
  }
  running_ = true;
  ::close(out.ends[1]);
  ::close(err.ends[1]);
  out_ = {.fd = out.ends[0], .to = STDOUT_FILENO, .line = {}};
  err_ = {.fd = err.ends[0], .to = STDERR_FILENO, .line = {}};
  ::fcntl(out_.fd, F_SETFL, O_NONBLOCK);
  ::fcntl(err_.fd, F_SETFL, O_NONBLOCK);
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

ProcessEnded WorkerProcess::reap() {
  // What the worker has started ends with it; until it is reaped, its group is surely its own.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  running_ = false;
  pump();
  close(out_);
  close(err_);
  return {.worker = worker_,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0};
}

void WorkerProcess::pump() {
  pump(out_);
  pump(err_);
}

void WorkerProcess::pump(Stream& stream) {
  std::array<char, 65536> block;
  while (stream.fd >= 0) {
    const ssize_t count = ::read(stream.fd, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) return close(stream);
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
    write_all(stream.to, tagged);
  }
}

void WorkerProcess::close(Stream& stream) {
  if (stream.fd < 0) return;
  if (!stream.line.empty())
    write_all(stream.to, fmt::format("[worker {}] {}\n", worker_, stream.line));
  stream.line.clear();
  ::close(stream.fd);
  stream.fd = -1;
}

}  // namespace weft
