#pragma once
/// The clock of a black box: ticks, and their conversion to nanoseconds.

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "transport/blackbox/box_format.hpp"

namespace weft {

/// The source of ticks. All processes of a job use the same one.
enum class TickSource : std::uint32_t { monotonic = 0, processor = 1 };

/// Returns the processor's counter if it runs at one rate on all cores and in all states of sleep,
/// and the kernel takes its own time from it. Otherwise returns CLOCK_MONOTONIC.
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

/// Reads the id that the host's kernel makes at each boot.
std::string read_boot_id();

/// The same moment on three clocks.
box_format::ClockPairV1 read_clock_pair(TickSource source) noexcept;

/// Converts ticks. Between two pairs it interpolates. Before the first pair and after the last, it
/// extrapolates at the rate between these two.
class TickScale {
 public:
  TickScale(TickSource source, std::vector<box_format::ClockPairV1> pairs);

  std::int64_t monotonic_ns(std::uint64_t tick) const noexcept;
  /// Converts a time on CLOCK_MONOTONIC to nanoseconds since 1970.
  std::int64_t realtime_ns(std::int64_t monotonic_ns) const noexcept;
  /// Converts a duration. If the rate of ticks is unknown, a tick counts as a nanosecond.
  std::uint64_t duration_ns(std::uint64_t ticks) const noexcept;

 private:
  TickSource source_;
  std::vector<box_format::ClockPairV1> pairs_;  // ticks and monotonic times grow
  double ns_per_tick_ = 1;                      // average from the first pair to the last
};

}  // namespace weft
