#pragma once
/// The chips of a job as they stand in its mesh.

#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// A heading and a line for each row of the last axis: the other axes' coordinates, then a letter
/// for each chip. Empty where the board has no mesh that fits its chips.
std::vector<std::string> mesh_grid(const Snapshot& job, bool colours);

/// ANSI's code that turns a state's colour on; empty: none. kPlain turns it off.
std::string colour_of(char letter);
inline constexpr const char* kPlain = "\x1b[0m";

}  // namespace weft
