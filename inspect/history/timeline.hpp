#pragma once
/// Timeline: converts the events of a ring of the black box to spans of time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// A span of time that began with an event. `begin_ns` < `end_ns`; both are CLOCK_MONOTONIC.
struct Slice {
  const Event* begin = nullptr;
  const Event* end = nullptr;  ///< null if no event ends this slice
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t earliest_ns = 0;  ///< earliest time at which the span may have begun
  bool unfinished = false;  ///< whether the end is missing; `end_ns` is then the next event's time
};

/// An event without duration.
struct Mark {
  const Event* event = nullptr;
  std::int64_t at_ns = 0;
};

/// The slices and marks of a ring. Slices are in the order of their beginnings; two slices are
/// either nested or disjoint. The ring must outlive the track.
struct Track {
  const EventRing* ring = nullptr;
  std::vector<Slice> slices{};
  std::vector<Mark> marks{};
  std::size_t lost_begins = 0;  ///< events that end a slice whose beginning was overwritten
};

/// Converts a ring to a track. Events at the same time are put 1 ns apart.
Track to_track(const EventRing& ring);

/// A range of time, in CLOCK_MONOTONIC.
struct TimeWindow {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = INT64_MAX;

  bool has(const Slice& slice) const { return slice.begin_ns <= to_ns && slice.end_ns >= from_ns; }
  bool has(const Mark& mark) const { return mark.at_ns >= from_ns && mark.at_ns <= to_ns; }
};

/// Returns the range from the first to the last time of the tracks; nothing if they have no times.
std::optional<TimeWindow> window_of(const std::vector<Track>& tracks);
/// Returns the range of time in which chips were in these steps; nothing if no chip was in one.
std::optional<TimeWindow> window_of_steps(const std::vector<Track>& tracks, std::uint64_t first,
                                          std::uint64_t last);

}  // namespace weft
