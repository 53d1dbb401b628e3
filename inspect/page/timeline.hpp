#pragma once
/// Timeline: makes the timeline of `weft inspect serve`'s page: the work of loops and chips as
/// slices of time.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The kinds of slices. inspect/page/web/timeline.js has the same numbers.
enum class SliceKind : std::uint8_t {
  run = 0,       ///< a run of a plan; a chip's other slices are within runs or between them
  wait = 1,      ///< a wait for the chip that came last
  exchange = 2,  ///< exchange of data
  commit = 3,
  op = 4,  ///< a step of the plan
  compile = 5,
  admission = 6,
  lease = 7,
  load = 8,
  save = 9,
  mark = 10,  ///< an instant: an error, a new generation, the host's sleep
};

struct TimelineSlice {
  SliceKind kind = SliceKind::run;
  std::int64_t begin_ns = 0;     ///< CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;  ///< negative if the slice hasn't ended
  std::string_view text{};       ///< valid as long as the snapshot's texts
  int peer = -1;                 ///< the chip that was waited for
  std::uint64_t number = 0;      ///< number of the collective, the run or the step
};

/// The slices of a loop or a chip. Runs have their own list. Where a slice begins inside another
/// one, the outer slice ends there, so that slices of one list don't overlap. Each list is sorted
/// by time.
struct TimelineRow {
  std::vector<TimelineSlice> runs{};
  std::vector<TimelineSlice> slices{};
};

TimelineRow timeline_row(const EventRing& ring);

struct TimelineRange {
  std::int64_t after_ns = 0;  ///< slices that ended before this time are omitted
  std::int64_t now_ns = 0;    ///< CLOCK_MONOTONIC now; 0: the time of the last event
};

/// Returns the slices as JSON: columns of numbers for each loop and chip. A time is written as the
/// difference to the previous time in its column, in nanoseconds.
std::string timeline_json(const Snapshot& job, const TimelineRange& range = {});

}  // namespace weft
