#pragma once
/// Keeps where a process crashed: see transport/job/crash_format.hpp.

#include <string>

#include "transport/board/board.hpp"

namespace weft {

/// From now on a signal such as SIGSEGV or SIGABRT writes the stack of its thread to the file, and
/// its name to the row; std::terminate() writes the exception. The process then ends as it would
/// have. A signal for which the program has a handler of its own is left to that. Called once, on
/// the main thread, which gets a stack of its own for this: an endless recursion has none.
void keep_crashes(const std::string& file, const BoardWriter& row);

}  // namespace weft
