#pragma once
/// Writes the stacks of a process that hangs.

#include <string>
#include <string_view>

namespace weft {

/// From now on SIGQUIT to a thread appends that thread's stack to the file, as glibc's backtrace()
/// writes it ("program(name+0x1234)"; names need -rdynamic, with which the program is linked), and
/// the thread continues. Throws io.
void dump_stack_on_sigquit(const std::string& file);

/// The last stack in such a file, readable: one call per line, with demangled names; "" if there is
/// none.
std::string last_stack(const std::string& file);

/// Converts one line that glibc has written; "" for any other line.
std::string readable_call(std::string_view line);

}  // namespace weft
