#pragma once
/// Builds the Result of a job from the events of the trainer's actor.

#include <weft/job/result.hpp>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// Adds a report of worker 0 and the report's metrics. Keeps at most 2 * kHistoryMax reports.
void add_to(Result& result, const Report& report, const Metrics& metrics);

/// Adds all data of the end except the error. Then keeps at most kHistoryMax reports.
void add_to(Result& result, const trainer_event::Ended& ended);

/// Throws loop_failed if a metric isn't finite. Called for jobs that end on such a metric.
void require_finite(const Report& report, const Metrics& metrics);

}  // namespace weft
