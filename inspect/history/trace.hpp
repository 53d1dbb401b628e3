#pragma once
/// The events of a job as a trace in Chrome's format, which Perfetto opens.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Inclusive.
struct StepRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// What of the events belongs to a trace; by default all. Slices that reach into a time are whole.
struct TraceOptions {
  double last_s = 0;                 ///< of the job's last seconds; 0: all
  std::optional<StepRange> steps{};  ///< the time in which any chip was in one of these steps
};

struct TraceCounts {
  std::size_t slices = 0;
  std::size_t marks = 0;
  std::size_t flows = 0;
  std::size_t dropped_flows = 0;  ///< the other end of which isn't there
  std::size_t unfinished = 0;     ///< slices whose end isn't there
  std::size_t lost_begins = 0;    ///< ends whose beginning isn't there; they are left out
};

/// Calls `write` with one piece of the document after another. Throws not_found where there are no
/// events, or none of the steps.
TraceCounts write_trace(const Snapshot& job, const TraceOptions& options,
                        const std::function<void(std::string_view)>& write);

}  // namespace weft
