#pragma once
/// Namespaces of processes, in which pids and times are valid: namespaces(7).

#include <cstdint>
#include <string_view>

namespace weft {

/// Returns the number of this process's namespace of a kind ("pid", "time"), or 0 if /proc doesn't
/// show it.
std::uint64_t namespace_of_this_process(std::string_view kind);

}  // namespace weft
