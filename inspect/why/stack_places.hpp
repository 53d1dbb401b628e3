#pragma once
/// StackPlaces: selects the part of a stack that the user wrote.

#include <string>
#include <vector>

#include "inspect/process/stack.hpp"

namespace weft {

/// Returns the innermost three frames of the user's code, without frames of the C and C++ libraries
/// and of weft.
std::vector<StackFrame> users_frames(const std::vector<StackFrame>& frames);

/// Returns what users_frames() returns; if no frame is the user's, returns the innermost three of
/// all frames.
std::vector<StackFrame> users_part(const std::vector<StackFrame>& frames);

/// Returns a function's name without the namespace of its own file. A long name also loses its
/// parameters and template arguments.
std::string short_name(std::string name);

/// Returns a text such as "load_batch(int) train.cpp:9 < train train.cpp:12".
std::string to_text(const std::vector<StackFrame>& frames);

}  // namespace weft
