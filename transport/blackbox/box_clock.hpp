#pragma once
/// The clock of a black box: ticks, and what they are in nanoseconds.

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "transport/blackbox/box_format.hpp"

namespace weft {

/// What ticks are; one for all processes of a job.
enum class TickSource : std::uint32_t { monotonic = 0, processor = 1 };

/// The processor's counter where it runs at one rate on all cores and in all states of sleep, and
/// the kernel takes its own time from it; else CLOCK_MONOTONIC.
TickSource find_tick_source();

inline std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::uint64_t read_ticks(TickSource source) noexcept {
#if defined(__x86_64__)
  if (source == TickSource::processor) return __builtin_ia32_rdtsc();
#endif
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

/// Of the host's kernel: changes with each boot.
std::string read_boot_id();

/// The same moment on three clocks.
box_format::ClockPairV1 read_clock_pair(TickSource source) noexcept;

/// Converts ticks. Between two pairs it interpolates; before the first and after the last it goes
/// on at the rate between these two.
class TickScale {
 public:
  TickScale(TickSource source, std::vector<box_format::ClockPairV1> pairs);

  std::int64_t monotonic_ns(std::uint64_t tick) const noexcept;
  /// Of a time on CLOCK_MONOTONIC, since 1970.
  std::int64_t realtime_ns(std::int64_t monotonic_ns) const noexcept;
  /// A duration. Ticks are taken for nanoseconds where their rate isn't known.
  std::uint64_t duration_ns(std::uint64_t ticks) const noexcept;

 private:
  TickSource source_;
  std::vector<box_format::ClockPairV1> pairs_;  // ticks and monotonic times grow
  double ns_per_tick_ = 1;                      // from the first to the last
};

}  // namespace weft
