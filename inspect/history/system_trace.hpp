#pragma once
/// SystemTrace: writes the calls of an actor system as a trace in Chrome's format, which Perfetto
/// opens.

#include <functional>
#include <string_view>

#include "inspect/history/trace.hpp"
#include "inspect/systems/system_events.hpp"

namespace weft {

/// Calls `write` with the pieces of the document in order. Each actor has a track with the
/// functions that it ran. Beside it are tracks with the actor's calls, as many as are needed so
/// that calls on one track don't overlap. The other threads of a process also have such tracks.
/// Arrows lead from a message to the function that it began, and from there to the end of the call.
/// `last_s` selects the last seconds; 0: all. Throws not_found if there are no events.
TraceCounts write_system_trace(const SystemEvents& events, double last_s,
                               const std::function<void(std::string_view)>& write);

}  // namespace weft
