#pragma once
/// Records where a process crashed; see transport/job/crash_format.hpp.

#include <string>

#include "transport/board/board.hpp"

namespace weft {

/// Installs the crash handlers. From then on, a signal such as SIGSEGV or SIGABRT writes its
/// thread's stack to the file and its name to the row, and std::terminate() writes the exception.
/// The process then ends as it would have done without them. If the program has its own handler for
/// a signal, that handler stays. Called once, on the main thread, which gets an alternate stack so
/// that the handler also works after endless recursion.
void keep_crashes(const std::string& file, const BoardWriter& row);

}  // namespace weft
