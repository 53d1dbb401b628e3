#pragma once
/// Computes the time that chips spend between their collectives.

#include <map>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns, for each chip, its own time minus the median own time of the chips in the same
/// collective, in seconds. The times are summed over the collectives for which events of at least
/// two chips exist. Own time is from the `leave` of one collective to the `enter` of the next,
/// without waits for commits.
std::map<int, double> own_time_above_median(const Snapshot& job);

}  // namespace weft
