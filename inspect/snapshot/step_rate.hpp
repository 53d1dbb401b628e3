#pragma once
/// Computes the rate of a job's steps. Every view and `/metrics` show this number.

#include <optional>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns steps per second of the first chip that has steps among its events. It counts steps that
/// began in the last 10 s, or the last 5 steps if steps are longer. A chip keeps the events of some
/// hundred steps, which cover less than 10 s in a fast job. While a step takes longer than the
/// steps before it, the number decreases. Returns nothing without two steps or without events.
std::optional<double> steps_per_second(const Snapshot& job);

}  // namespace weft
