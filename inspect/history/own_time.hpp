#pragma once
/// OwnTime: computes the time that chips spend between their collectives.

#include <map>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns for each chip its own time, minus the median own time of the chips in the same
/// collective, in seconds. Times are summed over the collectives for which at least two chips have
/// events. A chip's own time lasts from the `leave` of a collective to the `enter` of the next one,
/// without waits for commits.
std::map<int, double> own_time_above_median(const Snapshot& job);

}  // namespace weft
