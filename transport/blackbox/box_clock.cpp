#include "transport/blackbox/box_clock.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace weft {
namespace {

using box_format::ClockPairV2;

constexpr double kNsMax = 9.2e18;  // the largest value of a signed word

std::int64_t to_ns(double ns) { return static_cast<std::int64_t>(std::clamp(ns, -kNsMax, kNsMax)); }

/// Returns `to` minus `from`. This can't overflow, even for the invalid ticks of a damaged box.
double distance(std::uint64_t from, std::uint64_t to) {
  return to >= from ? static_cast<double>(to - from) : -static_cast<double>(from - to);
}

double rate_between(const ClockPairV2& a, const ClockPairV2& b) {
  return (static_cast<double>(b.monotonic_ns) - static_cast<double>(a.monotonic_ns)) /
         distance(a.tick, b.tick);
}

}  // namespace

TickSource find_tick_source() {
#if defined(__x86_64__)
  std::string source;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> source;
  if (source != "tsc") return TickSource::monotonic;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("flags")) continue;
    line += ' ';
    const bool is_steady = line.find(" constant_tsc ") != std::string::npos &&
                           line.find(" nonstop_tsc ") != std::string::npos;
    return is_steady ? TickSource::processor : TickSource::monotonic;
  }
#endif
  return TickSource::monotonic;
}

std::string read_boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

ClockPairV2 read_clock_pair(TickSource source) noexcept {
  const std::uint64_t before = read_ticks(source);
  const std::int64_t monotonic = clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t after = read_ticks(source);
  return {before + (after - before) / 2, monotonic, clock_ns(CLOCK_REALTIME)};
}

TickScale::TickScale(TickSource source, std::vector<ClockPairV2> pairs) : source_(source) {
  std::ranges::sort(pairs, {}, &ClockPairV2::tick);
  for (const ClockPairV2& pair : pairs) {
    const bool grows = pairs_.empty() || (pair.tick > pairs_.back().tick &&
                                          pair.monotonic_ns > pairs_.back().monotonic_ns);
    if (grows) pairs_.push_back(pair);
  }
  if (source_ == TickSource::processor && pairs_.size() > 1) {
    ns_per_tick_ = rate_between(pairs_.front(), pairs_.back());
  }
}

std::int64_t TickScale::monotonic_ns(std::uint64_t tick) const noexcept {
  if (source_ == TickSource::monotonic || pairs_.empty()) return static_cast<std::int64_t>(tick);
  const auto after = std::ranges::upper_bound(pairs_, tick, {}, &ClockPairV2::tick);
  const ClockPairV2& near = after == pairs_.begin() ? *after : *std::prev(after);
  const bool is_between = after != pairs_.begin() && after != pairs_.end();
  const double rate = is_between ? rate_between(near, *after) : ns_per_tick_;
  const std::int64_t since = to_ns(distance(near.tick, tick) * rate);
  std::int64_t at = 0;
  if (__builtin_add_overflow(near.monotonic_ns, since, &at)) return since;
  return at;
}

std::int64_t TickScale::realtime_ns(std::int64_t monotonic_ns) const noexcept {
  if (pairs_.empty()) return monotonic_ns;
  const auto after = std::ranges::upper_bound(pairs_, monotonic_ns, {}, &ClockPairV2::monotonic_ns);
  const ClockPairV2& near = after == pairs_.begin() ? *after : *std::prev(after);
  std::int64_t offset = 0;
  std::int64_t at = 0;
  if (__builtin_sub_overflow(near.realtime_ns, near.monotonic_ns, &offset) ||
      __builtin_add_overflow(monotonic_ns, offset, &at)) {
    return monotonic_ns;
  }
  return at;
}

std::uint64_t TickScale::duration_ns(std::uint64_t ticks) const noexcept {
  if (source_ == TickSource::monotonic) return ticks;
  return static_cast<std::uint64_t>(to_ns(static_cast<double>(ticks) * ns_per_tick_));
}

}  // namespace weft
