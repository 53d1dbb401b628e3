#pragma once
/// The part of a stack that its user wrote.

#include <string>
#include <vector>

#include "inspect/process/stack.hpp"

namespace weft {

/// Without the C and C++ library and weft, above and below; the innermost three.
std::vector<StackFrame> users_frames(const std::vector<StackFrame>& frames);

/// As users_frames(); where there are none, the innermost three of all.
std::vector<StackFrame> users_part(const std::vector<StackFrame>& frames);

/// A function's name without the namespace of its own file; a long one without its parameters
/// and template arguments.
std::string short_name(std::string name);

/// "load_batch(int) train.cpp:9 < train train.cpp:12".
std::string to_text(const std::vector<StackFrame>& frames);

}  // namespace weft
