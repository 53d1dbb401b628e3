#include "actors/worker/term_watch.hpp"

#include <poll.h>

#include <cerrno>
#include <csignal>

#include "actors/process/job_thread.hpp"
#include "actors/process/wake_queue.hpp"

namespace weft {
namespace {

/// Returns the WakeFd of the signal handler. It is static, because a handler can only use static
/// objects.
const WakeFd& term_wake() {
  static const WakeFd wake;
  return wake;
}

void on_signal(int) {
  const int saved = errno;
  term_wake().wake();
  errno = saved;
}

void set_action(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
}

bool has_action(void (*handler)(int)) {
  struct sigaction action {};
  ::sigaction(SIGTERM, nullptr, &action);
  return action.sa_handler == handler;
}

}  // namespace

TermWatch::TermWatch(std::function<void()> on_term) {
  term_wake().clear();
  const StartingThreads starting("weft.term");
  thread_ = std::jthread([on_term = std::move(on_term)](const std::stop_token& stop) {
    pollfd wait{.fd = term_wake().fd(), .events = POLLIN, .revents = 0};
    while (!stop.stop_requested()) {
      if (::poll(&wait, 1, -1) <= 0) continue;
      term_wake().clear();
      if (!stop.stop_requested()) on_term();
    }
  });
  if (has_action(SIG_DFL)) set_action(on_signal);
}

TermWatch::~TermWatch() {
  if (has_action(on_signal)) set_action(SIG_DFL);
  thread_.request_stop();
  term_wake().wake();
}

}  // namespace weft
