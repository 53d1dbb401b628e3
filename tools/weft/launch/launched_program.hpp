#pragma once
/// LaunchedProgram: the process that `weft launch` starts and watches.

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Pairs of descriptors: {a descriptor of this process, the program's descriptor that it replaces}.
using Replacements = std::vector<std::pair<int, int>>;

/// A program that was started. Only one may exist at a time. From the start on, signals that ask
/// this process to end are passed on to the program.
class LaunchedProgram {
 public:
  /// Runs `words` in `folder` ("": the current one). Throws io if it can't fork. If the program
  /// can't be started, the child prints the reason on stderr and ends with 127.
  LaunchedProgram(const std::vector<std::string>& words, const std::string& folder,
                  const Replacements& replacements);
  /// Reaps the program after it has ended.
  ~LaunchedProgram();
  LaunchedProgram(const LaunchedProgram&) = delete;
  LaunchedProgram& operator=(const LaunchedProgram&) = delete;

  pid_t pid() const { return pid_; }
  /// Becomes readable when the program has ended.
  int pidfd() const { return pidfd_; }
  void send(int signal) const;
  /// Waits for the program's end, but doesn't reap the program, because the system may reuse the
  /// pid of a reaped process.
  siginfo_t wait() const;

 private:
  pid_t pid_;
  int pidfd_;
};

/// Returns the exit code as a shell does: 128 + signal if the program was killed.
int exit_code(const siginfo_t& ended);

}  // namespace weft
