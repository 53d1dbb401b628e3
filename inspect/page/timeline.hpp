#pragma once
/// The timeline of the page of `weft inspect serve`: what loops and chips did, as slices of time.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The page has these numbers, too: inspect/page/web/timeline.js.
enum class SliceKind : std::uint8_t {
  run = 0,       ///< of a plan; all others of a chip lie in it, or between two
  wait = 1,      ///< for the chip that came last
  exchange = 2,  ///< of data
  commit = 3,
  op = 4,  ///< a step of the plan
  compile = 5,
  admission = 6,
  lease = 7,
  load = 8,
  save = 9,
  mark = 10,  ///< no time: an error, a new generation, the host's sleep
};

struct TimelineSlice {
  SliceKind kind = SliceKind::run;
  std::int64_t begin_ns = 0;     ///< CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;  ///< below 0: it hasn't ended
  std::string_view text{};       ///< lives as long as the snapshot's texts
  int peer = -1;                 ///< the chip that was waited for
  std::uint64_t number = 0;      ///< of the collective, the run, the step
};

/// Runs apart from all else, and what begins inside of another cuts that off: so no two slices of
/// one list overlap, and each list is by time.
struct TimelineRow {
  std::vector<TimelineSlice> runs{};
  std::vector<TimelineSlice> slices{};
};

TimelineRow timeline_row(const EventRing& ring);

struct TimelineRange {
  std::int64_t after_ns = 0;  ///< slices that had ended by then are left out
  std::int64_t now_ns = 0;    ///< CLOCK_MONOTONIC; 0: the last event's
};

/// As JSON: columns of numbers for each loop and chip, times as differences in nanoseconds.
std::string timeline_json(const Snapshot& job, const TimelineRange& range = {});

}  // namespace weft
