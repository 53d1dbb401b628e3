#pragma once
/// Records where a process crashed; see transport/job/crash_format.hpp.

#include <string>

#include "transport/board/board.hpp"

namespace weft {

/// Installs the crash handlers. From then on, a signal such as SIGSEGV or SIGABRT writes the stack
/// of its thread to the file, and the signal's name to the row; std::terminate() writes the
/// exception. The process then ends as it would have done without the handlers. If the program has
/// its own handler for a signal, that handler stays. Must be called once, on the main thread, which
/// gets an alternate stack: so the handlers also work after endless recursion.
void keep_crashes(const std::string& file, const BoardWriter& row);

}  // namespace weft
