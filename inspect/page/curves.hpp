#pragma once
/// Makes the curves of `weft inspect serve`'s page, over the steps of a job.

#include <string>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns JSON: the number columns of `progress_csv` (the text of the run folder's progress.csv),
/// and steps per second from the snapshot's events. Long curves are reduced to as many points as a
/// screen shows. Text that isn't CSV gives no columns.
std::string curves_json(const Snapshot& job, std::string progress_csv);

}  // namespace weft
