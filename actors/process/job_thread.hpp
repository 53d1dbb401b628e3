#pragma once
/// Starts weft's threads in a program. They have names for ps and debuggers, receive no signal
/// meant for the program, and log to the log of the job that started them.

#include <csignal>
#include <functional>
#include <thread>

namespace weft {

/// The constructor sets the calling thread's name (up to 15 characters) and blocks all its signals
/// except SIGPROF and those that a thread's own fault raises. Threads that it starts while the
/// object lives inherit the name and the blocked signals. The destructor restores both.
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

/// Sets the calling thread's name for ps and debuggers, of up to 15 characters.
void name_this_thread(const char* name);

/// Starts a thread that runs `body`. It has this name, and the same signals are blocked as by
/// StartingThreads.
std::jthread start_job_thread(const char* name, std::function<void()> body);

/// While it lives, this thread's writes to a closed pipe return an error and raise no signal.
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
