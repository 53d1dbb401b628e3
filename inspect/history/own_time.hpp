#pragma once
/// What chips do between their collectives.

#include <map>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// By chip: its own time above the median of the chips in the same collective, in seconds, summed
/// up over the collectives of which at least two chips' events are there. Own time is from the
/// `leave` of one collective to the `enter` of the next, without waits for commits.
std::map<int, double> own_time_above_median(const Snapshot& job);

}  // namespace weft
