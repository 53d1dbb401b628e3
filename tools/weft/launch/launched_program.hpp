#pragma once
/// LaunchedProgram: the process that `weft launch` starts and watches.

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Descriptors that take the place of the program's own: {this process's, the program's}.
using Replacements = std::vector<std::pair<int, int>>;

/// One at a time. From the start on, signals that ask this process to end go to the program.
class LaunchedProgram {
 public:
  /// Runs `words` in `folder` ("": this one). Throws io where it can't fork; a program that can't
  /// be started says so on stderr and ends with 127.
  LaunchedProgram(const std::vector<std::string>& words, const std::string& folder,
                  const Replacements& replacements);
  /// Reaps it, once it has ended.
  ~LaunchedProgram();
  LaunchedProgram(const LaunchedProgram&) = delete;
  LaunchedProgram& operator=(const LaunchedProgram&) = delete;

  pid_t pid() const { return pid_; }
  /// Becomes readable when it has ended.
  int pidfd() const { return pidfd_; }
  void send(int signal) const;
  /// Waits for its end, and leaves it unreaped: its pid may become another's then.
  siginfo_t wait() const;

 private:
  pid_t pid_;
  int pidfd_;
};

/// The exit code of a shell: 128 + signal where it was killed.
int exit_code(const siginfo_t& ended);

}  // namespace weft
