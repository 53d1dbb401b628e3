#pragma once
/// The roots of a job that has ended.

#include "inspect/why/why.hpp"

namespace weft {

/// Explains the end of a job that has a result.json.
void explain_end(const Snapshot& now, Why& why);

/// The trainer is gone, and there is no result.json: what the board says.
void explain_lost(const Snapshot& now, Why& why);

}  // namespace weft
