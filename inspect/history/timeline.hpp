#pragma once
/// The events of a ring as spans of time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// What an event began. `begin_ns` < `end_ns`; CLOCK_MONOTONIC.
struct Slice {
  const Event* begin = nullptr;
  const Event* end = nullptr;  ///< absent: it ended with the next event, or is unfinished
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t earliest_ns = 0;  ///< it began after the event before
  bool unfinished = false;       ///< its end isn't there: it goes on until the next that is
};

/// An event that takes no time.
struct Mark {
  const Event* event = nullptr;
  std::int64_t at_ns = 0;
};

/// What a ring says. Slices are in the order of their beginning; of any two, one contains the
/// other, or they don't overlap. The ring must outlive it.
struct Track {
  const EventRing* ring = nullptr;
  std::vector<Slice> slices{};
  std::vector<Mark> marks{};
  std::size_t lost_begins = 0;  ///< ends of what the ring no longer has the beginning of
};

/// Events at one time are put 1 ns apart.
Track to_track(const EventRing& ring);

/// CLOCK_MONOTONIC.
struct TimeWindow {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = INT64_MAX;

  bool has(const Slice& slice) const { return slice.begin_ns <= to_ns && slice.end_ns >= from_ns; }
  bool has(const Mark& mark) const { return mark.at_ns >= from_ns && mark.at_ns <= to_ns; }
};

/// From the first to the last of the tracks' times; absent: they have none.
std::optional<TimeWindow> window_of(const std::vector<Track>& tracks);
/// In which the chips were in these steps; absent: in none of them.
std::optional<TimeWindow> window_of_steps(const std::vector<Track>& tracks, std::uint64_t first,
                                          std::uint64_t last);

}  // namespace weft
