#pragma once
/// JobEnds: explains the end of a job by its roots.

#include <optional>
#include <span>

#include "inspect/why/why.hpp"

namespace weft {

/// Explains the end of a job that has a result.json.
void explain_end(const Snapshot& now, Why& why);

/// Returns the worker whose loop was at another line than all others when its job diverged, or
/// nothing if there is no such worker. The failure itself names the worker that was noticed first,
/// which may be any worker.
std::optional<int> find_worker_apart(std::span<const ActorRow> rows);

/// Explains, from the board, the end of a job whose trainer is gone without a result.json.
void explain_lost(const Snapshot& now, Why& why);

}  // namespace weft
