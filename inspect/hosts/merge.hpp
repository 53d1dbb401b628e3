#pragma once
/// Merges the snapshots of a job's hosts into one.

#include <cstdint>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The differences between this machine's clocks and those of another machine.
struct ClockShift {
  std::int64_t boottime_ns = 0;   ///< to add to a time of the other's CLOCK_BOOTTIME
  std::int64_t monotonic_ns = 0;  ///< to add to a time of an event
};

/// Converts all times of a snapshot.
void shift_times(Snapshot& part, const ClockShift& shift);

/// Puts what `part` knows of its own host into `into`: rows, chips, processes, events and waits.
/// Both snapshots have times of the same clocks.
void merge_host(Snapshot& into, Snapshot part);

}  // namespace weft
