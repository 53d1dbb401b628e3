#pragma once
/// Starts weft's threads in a program. They have names for ps and debuggers, receive no signal
/// meant for the program, and log to the log of the job that started them.

#include <csignal>
#include <functional>
#include <thread>

namespace weft {

/// The constructor sets the calling thread's name (up to 15 characters) and blocks all its signals
/// except SIGPROF and those raised by a thread's own fault. Threads started meanwhile inherit both.
/// The destructor restores the calling thread.
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

/// Names the calling thread for ps and debuggers. The name has up to 15 characters.
void name_this_thread(const char* name);

/// Starts a thread that runs `body`, with this name and the signal mask of StartingThreads.
std::jthread start_job_thread(const char* name, std::function<void()> body);

/// While an object lives, this thread's write to a closed pipe returns an error and raises no
/// signal.
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
