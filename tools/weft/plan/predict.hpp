#pragma once
/// Predicts the cost of a collective between chips of one host, from its traffic and the speed of
/// memory.

#include <cstdint>

#include "spmd/plan/plan.hpp"

namespace weft {

struct HostSpeed {
  double copy_bytes_per_second = 1e10;  ///< the rate at which one core copies
  int cores = 1;
};

/// Measures the speed of a copy that doesn't fit into caches. Takes some milliseconds.
HostSpeed measure_host(int cores);

/// Returns the predicted time of a collective. Each of its rounds takes the time of one hand-over
/// between cores. Chips that share a core take turns.
double predicted_seconds(const CollectiveSummary& collective, int group, int chips,
                         const HostSpeed& speed);

}  // namespace weft
