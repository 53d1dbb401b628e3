#pragma once
/// What a collective costs between chips of one host, by its traffic and the speed of memory.

#include <cstdint>

#include "spmd/plan/plan.hpp"

namespace weft {

struct HostSpeed {
  double copy_bytes_per_second = 1e10;  ///< of one core
  int cores = 1;
};

/// Measures a copy that doesn't fit into caches; some milliseconds.
HostSpeed measure_host(int cores);

/// A round costs a hand-over between cores; chips that share a core take turns.
double predicted_seconds(const CollectiveSummary& collective, int group, int chips,
                         const HostSpeed& speed);

}  // namespace weft
