#include "actors/process/job_thread.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <ctime>
#include <utility>

#include "actors/process/log.hpp"

namespace weft {
namespace {

bool sigpipe_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

StartingThreads::StartingThreads(const char* name) {
  ::prctl(PR_GET_NAME, before_);
  name_this_thread(name);
  sigset_t blocked;
  ::sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    ::sigdelset(&blocked, own);
  }
  ::pthread_sigmask(SIG_SETMASK, &blocked, &mask_);
}

StartingThreads::~StartingThreads() {
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  name_this_thread(before_);
}

void name_this_thread(const char* name) { ::prctl(PR_SET_NAME, name); }

std::jthread start_job_thread(const char* name, std::function<void()> body) {
  const StartingThreads starting(name);
  return std::jthread([body = std::move(body), log = current_log()] {
    const LogScope scope(log);
    body();
  });
}

SigpipeBlock::SigpipeBlock() : was_pending_(sigpipe_pending()) {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &mask_);
}

SigpipeBlock::~SigpipeBlock() {
  if (!was_pending_ && sigpipe_pending()) {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    const timespec now{};
    ::sigtimedwait(&pipe, nullptr, &now);  // a write of weft has raised it
  }
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

}  // namespace weft
