#pragma once
/// The three ways to wait for a word in shared memory: spin, yield, sleep in the kernel.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft {

/// Tells the core that this is a spin loop.
inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Sleeps while `word` is `expected`, for at most `timeout`. It may return early. It works across
/// processes.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::chrono::nanoseconds timeout) noexcept;

/// Wakes all threads that sleep on the word.
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

/// An asymmetric pair of fences (asymmetric_thread_fence of P1202). Stores before a heavy fence are
/// visible to loads after a light one, and vice versa, as between two seq_cst fences. The heavy
/// fence costs some microseconds, the light one nothing. They work across processes that have
/// mapped a job's memory.
inline void light_fence() noexcept;
void heavy_fence() noexcept;
/// Must be called before this process relies on light fences; JobMemory calls it.
void register_light_fence() noexcept;

/// The number of cores on which the calling thread may run.
int usable_cores() noexcept;

/// The longest sleep of a wait. Between two sleeps it checks for events that cause no wake: an
/// abort, a deadline, a dead peer.
inline constexpr std::chrono::milliseconds kSleepSlice{20};

/// How to wait: spin, then yield, then sleep in the kernel in slices of kSleepSlice.
struct WaitPolicy {
  int spins = 20000;  ///< about 0.5 ms: a sleep costs as much as 500 hand-overs of a spinning wait
  std::chrono::microseconds yield_for{100};
  std::chrono::milliseconds deadline{1800 * 1000};

  /// Returns a policy that doesn't spin if there are more threads than cores. `threads` counts all
  /// threads of the job on this host. Call it before a thread is bound to a core.
  static WaitPolicy for_threads(int threads, std::chrono::milliseconds deadline);
};

/// If another process's heavy fence can't interrupt this process, the light fence must be a full
/// fence each time.
extern std::atomic<bool> heavy_fence_reaches_us;
/// The light fence of such a process.
void full_fence() noexcept;

void light_fence() noexcept {
  if (heavy_fence_reaches_us.load(std::memory_order_relaxed)) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    full_fence();
  }
}

}  // namespace weft
