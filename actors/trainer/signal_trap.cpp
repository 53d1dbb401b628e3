#include <weft/actors/trainer/signal_trap.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include <weft/actors/trainer/wake_queue.hpp>

namespace weft {
namespace {

constexpr std::array kCaughtSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD};

/// Handlers reach only what is static.
std::atomic<int> caught_signal{0};
const WakeFd& signal_wake() {
  static const WakeFd wake;
  return wake;
}
std::array<struct sigaction, kSignals.size()> previous_actions{};

void on_signal(int signal) {
  const int saved = errno;
  caught_signal.store(signal);
  signal_wake().wake();
  errno = saved;
}

}  // namespace

SignalTrap::SignalTrap() {
  signal_wake().clear();
  caught_signal.store(0);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &previous_actions[i]);
    struct sigaction action = previous_actions[i];
    const bool ignored = action.sa_handler == SIG_IGN;
    if (i < kCaughtSignals.size() && !ignored) {
      action = {};
      action.sa_handler = on_signal;
      action.sa_flags = SA_RESTART;
    } else if (kSignals[i] == SIGPIPE && action.sa_handler == SIG_DFL) {
      action.sa_handler = SIG_IGN;
    } else if (kSignals[i] == SIGCHLD && ignored) {
      action.sa_handler = SIG_DFL;
    }
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

SignalTrap::~SignalTrap() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous_actions[i], nullptr);
  }
}

int SignalTrap::fd() const { return signal_wake().fd(); }

int SignalTrap::take() {
  signal_wake().clear();
  return caught_signal.exchange(0);
}

}  // namespace weft
