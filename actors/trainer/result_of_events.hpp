#pragma once
/// How the Result of a job comes from what the trainer's actor tells.

#include <optional>

#include <weft/result.hpp>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// A report of worker 0, with its metrics. The history has at most 2 * kHistoryMax reports.
void add_to(Result& result, const Report& report, const Metrics& metrics);

/// All but the error. The history has at most kHistoryMax reports from here on.
void add_to(Result& result, const trainer_event::Ended& ended);

/// The failure of a job that ends on a number which isn't finite; nothing: the report has none.
std::optional<Failure> find_nan(const Report& report, const Metrics& metrics);

}  // namespace weft
