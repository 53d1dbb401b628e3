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

/// Sleeps while `word` is `expected`, for at most `timeout`; may return early. Across processes.
void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::chrono::nanoseconds timeout) noexcept;

/// Wakes all that sleep on the word.
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

/// A fence in two parts, as asymmetric_thread_fence of P1202: what is stored before a heavy one is
/// seen by what is loaded after a light one, or the other way round, as between two seq_cst fences.
/// Only the heavy one costs, some microseconds. Across processes that have mapped a job's memory.
void light_fence() noexcept;
void heavy_fence() noexcept;
/// Has to be called before this process relies on the light one; JobMemory does.
void register_light_fence() noexcept;

/// Cores that the calling thread may run on.
int usable_cores() noexcept;

/// Longest sleep of a wait: between two of them it looks for what wakes nobody, as an abort, a
/// deadline or a peer that died.
inline constexpr std::chrono::milliseconds kSleepSlice{20};

/// How to wait: spin, then yield, then sleep in the kernel in slices of kSleepSlice.
struct WaitPolicy {
  int spins = 20000;  ///< about 0.5 ms: a sleep costs as much as 500 hand-overs of a spinning wait
  std::chrono::microseconds yield_for{100};
  std::chrono::milliseconds deadline{1800 * 1000};

  /// No spinning where more threads than cores take part. `threads`: all of this host. To be called
  /// before a thread is bound to a core.
  static WaitPolicy for_threads(int threads, std::chrono::milliseconds deadline);
};

}  // namespace weft
