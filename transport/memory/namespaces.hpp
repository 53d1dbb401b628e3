#pragma once
/// Process and time namespaces, within which pids and times are valid: see namespaces(7).

#include <cstdint>
#include <string_view>

namespace weft {

/// Returns the number of the namespace of this kind ("pid", "time") in which this process is, or 0
/// if /proc doesn't show it.
std::uint64_t namespace_of_this_process(std::string_view kind);

}  // namespace weft
