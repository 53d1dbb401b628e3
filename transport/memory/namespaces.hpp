#pragma once
/// Namespaces: the names of this machine and of this process's namespaces, in which pids and times
/// are valid (namespaces(7)).

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

/// Returns the number of this process's namespace of this kind ("pid" or "time"), or 0 if /proc
/// doesn't show it.
std::uint64_t namespace_of_this_process(std::string_view kind);

/// Returns the host name of this machine.
std::string machine_name();

}  // namespace weft
