#pragma once
/// Whether the process that a board names is still there.

#include <cstdint>

namespace weft {

/// True where `pid` is a process that hasn't ended (a zombie has) and isn't another one that took
/// the number since: it started at `unix_ns`, in nanoseconds, or before. Start times are exact to a
/// clock tick, but counted from the boot; 2 s are allowed for a wall clock that was adjusted since.
bool runs_since(int pid, std::int64_t unix_ns);

}  // namespace weft
