#pragma once
/// Curves: makes the curves that the page of `weft inspect serve` shows over the steps of a job.

#include <string>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns as JSON the columns of numbers in `progress_csv` (the text of the run folder's
/// progress.csv), and the steps per second from the snapshot's events. Long curves are reduced to
/// as many points as a screen shows. A text that isn't CSV gives no columns.
std::string curves_json(const Snapshot& job, std::string progress_csv);

}  // namespace weft
