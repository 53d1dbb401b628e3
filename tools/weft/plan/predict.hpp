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

/// Bytes that each chip of a group of `group` reads of others or writes for them: of an all_reduce
/// 2 (n - 1) / n of its operand, of the others (n - 1) / n.
double traffic_bytes(OpKind kind, std::int64_t bytes, int group);

/// A round costs a hand-over between cores; chips that share a core take turns.
double predicted_seconds(const CollectiveSummary& collective, int group, int chips,
                         const HostSpeed& speed);

}  // namespace weft
