#pragma once
/// Trace: writes the events of a job as a trace in Chrome's format, which Perfetto opens.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// A range of steps that includes both ends.
struct StepRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// Selects the events of a trace; by default all. A slice that overlaps the selected time is
/// included completely.
struct TraceOptions {
  double last_s = 0;                 ///< the last seconds of the job; 0: all
  std::optional<StepRange> steps{};  ///< the time in which any chip was in these steps
};

struct TraceCounts {
  std::size_t slices = 0;
  std::size_t marks = 0;
  std::size_t flows = 0;
  std::size_t dropped_flows = 0;  ///< flows that lack one end
  std::size_t unfinished = 0;     ///< slices whose end is missing
  std::size_t lost_begins = 0;    ///< ends without a beginning, which the trace omits
};

/// Calls `write` with the pieces of the document in order. Throws not_found if there are no events,
/// or no events of the selected steps.
TraceCounts write_trace(const Snapshot& job, const TraceOptions& options,
                        const std::function<void(std::string_view)>& write);

}  // namespace weft
