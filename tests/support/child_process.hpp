#pragma once
/// Runs code in a forked process, and makes job ids that no other test has.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace weft::testing {

/// Returns a job id of 32 hex digits that no other call returns.
inline std::string unique_job() {
  static unsigned count = 0;
  return fmt::format("{:024x}{:08x}", getpid(), ++count);
}

/// Runs `body` in a fork of this process, which must have only one thread. The destructor kills the
/// fork.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& body) {
    int ends[2];
    if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      close(ends[0]);
      run_and_exit(body, ends[1]);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)) {}
  ~ChildProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      join();
    }
  }

  pid_t pid() const { return pid_; }
  void kill() const { ::kill(pid_, SIGKILL); }

  /// Waits for the fork's end. Returns "" if `body` returned. Otherwise returns the message of its
  /// exception or the signal that ended it.
  std::string join() {
    std::string text;
    char buffer[4096];
    for (ssize_t size; (size = read(output_, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(size));
    }
    close(output_);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    if (WIFSIGNALED(status)) text += fmt::format("killed by signal {}", WTERMSIG(status));
    if (text.empty() && WEXITSTATUS(status) != 0) {
      text = fmt::format("exit status {}", WEXITSTATUS(status));
    }
    return text;
  }

 private:
  [[noreturn]] static void run_and_exit(const std::function<void()>& body, int output) {
    std::string text;
    try {
      body();
    } catch (const std::exception& error) {
      text = error.what();
    }
    const ssize_t written = write(output, text.data(), text.size());
    _exit(text.empty() && written == 0 ? 0 : 1);
  }

  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace weft::testing
