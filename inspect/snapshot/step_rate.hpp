#pragma once
/// How fast a job makes steps: the one number that every view and `/metrics` show.

#include <optional>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Steps a second, of the first chip that has any among its events: of those that began in the last
/// 10 s, or of the last 5 where steps are longer. A chip keeps the events of some hundred steps, so
/// that those of a fast job are of less time. A step that takes longer than the ones before it
/// lowers the number while it lasts. Absent: there aren't two steps, or no events.
std::optional<double> steps_per_second(const Snapshot& job);

}  // namespace weft
