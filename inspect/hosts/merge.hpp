#pragma once
/// Merge: merges the snapshots of a job's hosts into one.

#include <cstdint>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The differences between this machine's clocks and those of another machine.
struct ClockShift {
  std::int64_t boottime_ns = 0;   ///< to add to a time of the other machine's CLOCK_BOOTTIME
  std::int64_t monotonic_ns = 0;  ///< to add to an event's time
};

/// Converts all times of a snapshot to this machine's clocks.
void shift_times(Snapshot& part, const ClockShift& shift);

/// Puts what `part` knows of its own host into `into`: rows, chips, processes, events and waits.
/// The times of both snapshots must be of the same clocks.
void merge_host(Snapshot& into, Snapshot part);

}  // namespace weft
