#include "actors/process/signal_hub.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <mutex>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// The signals, in the order in which a job takes them: preemption comes before cancellation.
constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP};

/// A job's subscription, which the handler reads. `wake` publishes the slot, so it is set last and
/// cleared first. The handler counts itself in `handling`, and a thread that clears a slot waits
/// until no handler runs.
struct Slot {
  std::atomic<const WakeFd*> wake{nullptr};
  std::atomic<unsigned> signals{0};  ///< bit i: kSignals[i] was received
  std::atomic<bool> chain{false};    ///< the program's own handler is called too
};
std::array<Slot, SignalSubscription::kCountMax> slots;
std::atomic<int> handling{0};

/// The program's own handlers of kSignals before the first job. Written while no handler is
/// installed.
std::array<struct sigaction, kSignals.size()> previous{};
std::array<bool, kSignals.size()> installed{};
int subscriptions = 0;  ///< guarded by hub_mutex, as is `installed`
std::mutex hub_mutex;

std::size_t index_of(int signal) {
  std::size_t i = 0;
  while (i + 1 < kSignals.size() && kSignals[i] != signal) ++i;
  return i;
}

void call_own_handler(const struct sigaction& own, int signal, siginfo_t* info, void* context) {
  if ((own.sa_flags & SA_SIGINFO) != 0) {
    own.sa_sigaction(signal, info, context);
  } else if (own.sa_handler != SIG_DFL && own.sa_handler != SIG_IGN) {
    own.sa_handler(signal);
  }
}

/// True while on_signal() runs on this thread. A handler of the program may call the handler that
/// it replaced, which is on_signal(); such an inner call does nothing.
[[gnu::tls_model("initial-exec")]] thread_local bool is_inside = false;

void on_signal(int signal, siginfo_t* info, void* context) {
  if (is_inside) return;
  is_inside = true;
  const int saved = errno;
  handling.fetch_add(1);
  bool chain = true;
  bool told = false;
  for (Slot& slot : slots) {
    const WakeFd* wake = slot.wake.load();
    if (wake == nullptr) continue;
    chain = told ? chain || slot.chain : slot.chain.load();
    told = true;
    slot.signals.fetch_or(1U << index_of(signal));
    wake->wake();
  }
  handling.fetch_sub(1);
  const struct sigaction& own = previous[index_of(signal)];
  if (chain) call_own_handler(own, signal, info, context);
  // If no job was told, the last job has ended but the program has installed this handler again.
  // Then it must act like the program's previous handler.
  if (!told && (own.sa_flags & SA_SIGINFO) == 0 && own.sa_handler == SIG_DFL) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  errno = saved;
  is_inside = false;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

void install() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kSignals[i], nullptr, &now);
    if (!is_ours(now)) previous[i] = now;  // on_signal() isn't recorded: it would call itself
    installed[i] = now.sa_handler != SIG_IGN;
    if (!installed[i]) continue;
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    const bool has_handler = (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL;
    const int own_flags = now.sa_flags & (SA_RESTART | SA_ONSTACK);
    action.sa_flags = SA_SIGINFO | (has_handler ? own_flags : SA_RESTART);
    action.sa_mask = previous[i].sa_mask;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

void put_back() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kSignals[i], nullptr, &now);
    if (installed[i] && is_ours(now)) ::sigaction(kSignals[i], &previous[i], nullptr);
  }
}

}  // namespace

SignalSubscription::SignalSubscription(bool chain) {
  const std::lock_guard lock(hub_mutex);
  for (int i = 0; i < kCountMax && slot_ < 0; ++i) {
    if (slots[static_cast<std::size_t>(i)].wake.load() == nullptr) slot_ = i;
  }
  if (slot_ < 0) {
    fail(Errc::unavailable,
         "{} jobs of this process wait for signals already: end one first, or set "
         "run.handle_signals = false",
         kCountMax);
  }
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  slot.signals.store(0);
  slot.chain.store(chain);
  slot.wake.store(&wake_);
  if (subscriptions++ == 0) install();
}

SignalSubscription::~SignalSubscription() {
  const std::lock_guard lock(hub_mutex);
  if (--subscriptions == 0) put_back();
  slots[static_cast<std::size_t>(slot_)].wake.store(nullptr);
  while (handling.load() != 0) {
  }
}

int SignalSubscription::take() {
  wake_.clear();
  std::atomic<unsigned>& signals = slots[static_cast<std::size_t>(slot_)].signals;
  const unsigned came = signals.load();
  if (came == 0) return 0;
  const auto first = static_cast<std::size_t>(std::countr_zero(came));
  signals.fetch_and(~(1U << first));
  return kSignals[first];
}

void SignalSubscription::end_the_program_by(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t own;
  ::sigemptyset(&own);
  ::sigaddset(&own, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  ::raise(signal);
}

bool SignalSubscription::ends_the_program(int signal) {
  const struct sigaction& own = previous[index_of(signal)];
  return (own.sa_flags & SA_SIGINFO) == 0 && own.sa_handler == SIG_DFL;
}

}  // namespace weft
