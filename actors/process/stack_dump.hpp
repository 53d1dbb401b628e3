#pragma once
/// Makes a hanging process write the stack of a thread, and reads it.

#include <string>
#include <string_view>

namespace weft {

/// Installs a handler of SIGQUIT: a thread that gets this signal appends its stack to the file and
/// continues. The format is that of glibc's backtrace() ("program(name+0x1234)"). Names need
/// -rdynamic, with which weft links programs. Throws io.
void dump_stack_on_sigquit(const std::string& file);

/// Returns the last stack in a file that the handler of SIGQUIT has written, one call per line with
/// demangled names; "" if there is none.
std::string last_stack(const std::string& file);

/// Returns a line that glibc has written in readable form; "" for any other line.
std::string readable_call(std::string_view line);

}  // namespace weft
