#pragma once
/// The curves of the page of `weft inspect serve`, over the steps of a job.

#include <string>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// As JSON: the columns of numbers of `progress_csv`, the text of the run folder's progress.csv,
/// and steps a second from the events of the snapshot. Of long ones as many points as a screen
/// shows. Text that isn't CSV gives no columns.
std::string curves_json(const Snapshot& job, std::string progress_csv);

}  // namespace weft
