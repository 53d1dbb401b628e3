#include "transport/memory/wait.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace weft {
namespace {

/// The time for which a wait yields if chips share cores. The awaited chips can run meanwhile. A
/// sleep with its wake-up costs more than several yields.
constexpr std::chrono::microseconds kCrowdedYield{1000};

}  // namespace

std::atomic<bool> heavy_fence_reaches_us{false};

/// ThreadSanitizer doesn't support fences, and GCC warns about that. These fences order only
/// atomics, in which ThreadSanitizer sees no race even without them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
#pragma GCC diagnostic pop

void register_light_fence() noexcept {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0) {
    heavy_fence_reaches_us.store(true, std::memory_order_relaxed);
  }
}

void heavy_fence() noexcept {
  full_fence();
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::chrono::nanoseconds timeout) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

int usable_cores() noexcept {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

WaitPolicy WaitPolicy::for_threads(int threads, std::chrono::milliseconds deadline) {
  return threads <= usable_cores()
             ? WaitPolicy{.deadline = deadline}
             : WaitPolicy{.spins = 0, .yield_for = kCrowdedYield, .deadline = deadline};
}

}  // namespace weft
