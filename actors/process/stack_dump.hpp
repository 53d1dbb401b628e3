#pragma once
/// Lets a hanging process write the stack of a thread, and reads that stack.

#include <string>
#include <string_view>

namespace weft {

/// Installs a handler of SIGQUIT: a thread that gets this signal appends its stack to the file and
/// continues. The lines have the format of glibc's backtrace(): "program(name+0x1234)". They have
/// names because weft links programs with -rdynamic. Throws io.
void dump_stack_on_sigquit(const std::string& file);

/// Returns the last stack that the handler of SIGQUIT has written to the file, one call per line
/// with demangled names; "" if there is none.
std::string last_stack(const std::string& file);

/// Returns a readable form of a line that glibc has written; "" for any other line.
std::string readable_call(std::string_view line);

}  // namespace weft
