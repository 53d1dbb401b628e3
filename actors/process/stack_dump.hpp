#pragma once
/// Writes the stacks of a process that hangs.

#include <string>
#include <string_view>

namespace weft {

/// Installs a handler of SIGQUIT: a thread that gets this signal appends its stack to the file and
/// continues. The format is that of glibc's backtrace() ("program(name+0x1234)"). Names need
/// -rdynamic, with which weft links programs. Throws io.
void dump_stack_on_sigquit(const std::string& file);

/// Returns the last stack in such a file in readable form, one call per line with demangled names;
/// "" if there is none.
std::string last_stack(const std::string& file);

/// Converts one line that glibc has written; "" for any other line.
std::string readable_call(std::string_view line);

}  // namespace weft
