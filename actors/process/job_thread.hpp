#pragma once
/// The threads that weft starts in a program: they have names that ps and debuggers show, take no
/// signal that is for the program, and log to the log of the job that started them.

#include <csignal>
#include <functional>
#include <thread>

namespace weft {

/// Threads started while this lives begin with this name (up to 15 characters) and with all signals
/// blocked but those that a thread's own fault raises, and SIGPROF: a new thread inherits both from
/// the one that starts it. Afterwards the calling thread has its own again.
class StartingThreads {
 public:
  explicit StartingThreads(const char* name);
  ~StartingThreads();
  StartingThreads(const StartingThreads&) = delete;
  StartingThreads& operator=(const StartingThreads&) = delete;

 private:
  char before_[16] = {};
  sigset_t mask_{};
};

/// As ps and debuggers show it: up to 15 characters.
void name_this_thread(const char* name);

/// A thread of that kind that runs `body`.
std::jthread start_job_thread(const char* name, std::function<void()> body);

/// While it lives, a write of this thread to a closed pipe is an error and no signal.
class SigpipeBlock {
 public:
  SigpipeBlock();
  ~SigpipeBlock();
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  bool was_pending_;
  sigset_t mask_{};
};

}  // namespace weft
