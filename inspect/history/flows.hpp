#pragma once
/// What leads from one actor to another: messages, and the chip for which others waited.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "inspect/history/timeline.hpp"

namespace weft {

/// A place in a slice of a track, by their numbers.
struct FlowEnd {
  std::size_t track = 0;
  std::size_t slice = 0;
  std::int64_t at_ns = 0;
};

/// `from` isn't later than `to`.
struct Flow {
  bool is_message = false;  ///< else from the chip that came last to one that waited for it
  std::string_view name{};
  FlowEnd from{};
  FlowEnd to{};
};

struct Flows {
  std::vector<Flow> found{};
  std::size_t dropped = 0;  ///< the other end of which isn't there
};

/// Of the slices in the window. A chip announces a collective before it notes that: a collective of
/// which another has already seen the announcement is made to begin there.
Flows find_flows(std::vector<Track>& tracks, const TimeWindow& window);

}  // namespace weft
