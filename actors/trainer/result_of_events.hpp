#pragma once
/// How the Result of a job comes from what the trainer's actor tells.

#include <weft/job/result.hpp>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// A report of worker 0, with its metrics. The history has at most 2 * kHistoryMax reports.
void add_to(Result& result, const Report& report, const Metrics& metrics);

/// All but the error. The history has at most kHistoryMax reports from here on.
void add_to(Result& result, const trainer_event::Ended& ended);

/// Throws loop_failed, for a job that ends on a number which isn't finite.
void require_finite(const Report& report, const Metrics& metrics);

}  // namespace weft
