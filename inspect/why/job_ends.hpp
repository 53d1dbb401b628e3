#pragma once
/// The roots of a job that has ended.

#include <optional>
#include <span>

#include "inspect/why/why.hpp"

namespace weft {

/// Explains the end of a job that has a result.json.
void explain_end(const Snapshot& now, Why& why);

/// The worker whose loop was at another line than those of all others when its job diverged; absent
/// where there is no such one. A failure names the worker that was seen first, which may be any.
std::optional<int> find_worker_apart(std::span<const ActorRow> rows);

/// The trainer is gone, and there is no result.json: what the board says.
void explain_lost(const Snapshot& now, Why& why);

}  // namespace weft
