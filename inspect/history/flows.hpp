#pragma once
/// Flows: finds flows from one actor to another: messages, and waits for the chip that came last to
/// a collective.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "inspect/history/timeline.hpp"

namespace weft {

/// A time in a slice of a track. `track` and `slice` are indices.
struct FlowEnd {
  std::size_t track = 0;
  std::size_t slice = 0;
  std::int64_t at_ns = 0;
};

/// A flow between two tracks; `from` isn't later than `to`.
struct Flow {
  bool is_message = false;  ///< false: from the last chip to a chip that waited for it
  std::string_view name{};
  FlowEnd from{};
  FlowEnd to{};
};

struct Flows {
  std::vector<Flow> found{};
  std::size_t dropped = 0;  ///< flows that lack one end
};

/// Returns the flows between slices in the window. If another chip saw a chip enter a collective
/// before the recorded time, moves the beginning of the entering chip's slice to the time when the
/// other chip saw it. This happens because a chip announces that it enters a collective before it
/// records the event.
Flows find_flows(std::vector<Track>& tracks, const TimeWindow& window);

}  // namespace weft
