#pragma once
/// A process that hangs says where it is.

#include <string>

namespace weft {

/// From now on SIGQUIT to a thread adds that thread's stack to the file, as glibc's backtrace()
/// writes it ("program(+0x1234)": for addr2line), and the thread goes on. Throws io.
void dump_stack_on_sigquit(const std::string& file);

}  // namespace weft
