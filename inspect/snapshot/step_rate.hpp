#pragma once
/// StepRate: computes the rate of a job's steps, which every view and `/metrics` show.

#include <optional>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns the steps per second of the first chip that has steps among its events. Counts the steps
/// that began in the last 10 s, or the last 5 steps if these took longer. In a fast job the events
/// of a chip, some hundred steps, cover less than 10 s. While a step takes longer than the steps
/// before it, the rate decreases. Returns nothing if there are no events, or fewer than two steps.
std::optional<double> steps_per_second(const Snapshot& job);

}  // namespace weft
