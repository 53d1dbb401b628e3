#pragma once
/// BoxTimekeeper: writes the time to a job's black box each second. From these times, readers
/// derive when events happened, and when the host was asleep.

#include <chrono>
#include <cstdint>
#include <utility>

#include "transport/blackbox/black_box_writer.hpp"

namespace weft {

/// Only the trainer's thread uses it.
class BoxTimekeeper {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit BoxTimekeeper(BlackBoxWriter& box) : box_(box), events_(box.loop(-1)) {}

  Time deadline() const { return next_; }
  /// Writes the time and returns true, at most once a second; otherwise returns false.
  bool on_time(Time now) {
    if (now < next_) return false;
    next_ = now + std::chrono::seconds(1);
    tell();
    return true;
  }
  void tell() {
    constexpr std::int64_t kJumpNs = 10'000'000;
    box_.add_clock_pair();
    const std::int64_t before = std::exchange(asleep_ns_, asleep_ns());
    if (asleep_ns_ - before < kJumpNs) return;
    events_.put(EventKind::clock_jump, {.value = static_cast<std::uint64_t>(asleep_ns_ - before)});
  }

 private:
  /// Returns the time for which the host has been asleep since it was booted.
  static std::int64_t asleep_ns() { return clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC); }

  BlackBoxWriter& box_;
  EventWriter events_;
  Time next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::int64_t asleep_ns_ = asleep_ns();
};

}  // namespace weft
