#pragma once
/// Wait: three ways to wait for a change of a word in shared memory: spin, yield, sleep in the
/// kernel.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft {

/// Tells the processor that this is a spin loop.
inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Sleeps while `word` equals `expected`, for at most `timeout`. May return early. Works even for a
/// word that another process changes.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::chrono::nanoseconds timeout) noexcept;

/// Wakes all threads that sleep on the word.
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

/// A pair of asymmetric fences (asymmetric_thread_fence of P1202). Stores before a heavy fence are
/// visible to loads after a light fence, and vice versa, as between two seq_cst fences. A heavy
/// fence takes some microseconds, a light fence no time. The fences work between all processes that
/// have mapped a job's memory.
inline void light_fence() noexcept;
void heavy_fence() noexcept;
/// Must be called before the process uses light fences. JobMemory calls it.
void register_light_fence() noexcept;

/// Returns the number of cores on which the calling thread may run.
int usable_cores() noexcept;

/// The longest time that a wait sleeps without a check for events that wake no sleeper: an abort, a
/// deadline, a dead peer.
inline constexpr std::chrono::milliseconds kSleepSlice{20};

/// The limits of a wait: it spins, then yields, then sleeps in the kernel in slices of kSleepSlice.
struct WaitPolicy {
  int spins = 20000;  ///< about 0.5 ms; a sleep costs as much as 500 waits that end while spinning
  std::chrono::microseconds yield_for{100};
  std::chrono::milliseconds deadline{1800 * 1000};

  /// Returns a policy that doesn't spin if `threads`, the number of all threads of the job on this
  /// host, exceeds the number of cores. Call it before binding a thread to a core.
  static WaitPolicy for_threads(int threads, std::chrono::milliseconds deadline);
};

/// True if heavy fences of other processes can interrupt this process. If not, its light fences
/// must be full fences.
extern std::atomic<bool> heavy_fence_reaches_us;
/// A seq_cst fence. It replaces the light fence if heavy_fence_reaches_us is false.
void full_fence() noexcept;

void light_fence() noexcept {
  if (heavy_fence_reaches_us.load(std::memory_order_relaxed)) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    full_fence();
  }
}

}  // namespace weft
