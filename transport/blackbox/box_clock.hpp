#pragma once
/// BoxClock: reads the ticks of a black box, and converts them to nanoseconds.

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "transport/blackbox/box_format.hpp"

namespace weft {

/// The clock of the ticks. All processes of a job use the same one.
enum class TickSource : std::uint32_t { monotonic = 0, processor = 1 };

/// Returns `processor` if the processor's counter runs at one rate on all cores and in all sleep
/// states, and the kernel itself uses the counter as its clock. Otherwise returns `monotonic`.
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

/// Returns the id that the host's kernel makes at each boot.
std::string read_boot_id();

/// Reads three clocks at the same moment.
box_format::ClockPairV2 read_clock_pair(TickSource source) noexcept;

/// Converts ticks to times. Interpolates between clock pairs. Before the first pair and after the
/// last one, extrapolates at the average rate from the first pair to the last.
class TickScale {
 public:
  TickScale(TickSource source, std::vector<box_format::ClockPairV2> pairs);

  std::int64_t monotonic_ns(std::uint64_t tick) const noexcept;
  /// Converts a time on CLOCK_MONOTONIC to nanoseconds since 1970.
  std::int64_t realtime_ns(std::int64_t monotonic_ns) const noexcept;
  /// Converts a duration. If the rate of ticks is unknown, a tick counts as one nanosecond.
  std::uint64_t duration_ns(std::uint64_t ticks) const noexcept;

 private:
  TickSource source_;
  std::vector<box_format::ClockPairV2> pairs_;  // in ascending order of ticks and times
  double ns_per_tick_ = 1;  // average over the time from the first pair to the last
};

}  // namespace weft
