#pragma once
/// A process that hangs says where it is.

#include <string>
#include <string_view>

namespace weft {

/// From now on SIGQUIT to a thread adds that thread's stack to the file, as glibc's backtrace()
/// writes it ("program(name+0x1234)", with the names that the program exports; it is linked with
/// -rdynamic for that), and the thread goes on. Throws io.
void dump_stack_on_sigquit(const std::string& file);

/// The last stack of such a file for people to read: a call a line, names as in the source; ""
/// where there is none.
std::string last_stack(const std::string& file);

/// What it makes of a line that glibc has written; "" for any other.
std::string readable_call(std::string_view line);

}  // namespace weft
