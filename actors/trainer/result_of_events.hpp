#pragma once
/// Builds the Result of a job from the events of the trainer's actor.

#include <weft/job/result.hpp>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// Adds a report of worker 0 and its metrics. The history has at most 2 * kHistoryMax reports.
void add_to(Result& result, const Report& report, const Metrics& metrics);

/// Adds everything but the error. Afterwards the history has at most kHistoryMax reports.
void add_to(Result& result, const trainer_event::Ended& ended);

/// Throws loop_failed if a metric isn't finite, for a job that ends on such a number.
void require_finite(const Report& report, const Metrics& metrics);

}  // namespace weft
