#pragma once
/// The machine and the namespaces of this process. Pids and times are valid within namespaces: see
/// namespaces(7).

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

/// Returns the number of the namespace of this kind ("pid", "time") in which this process is, or 0
/// if /proc doesn't show it.
std::uint64_t namespace_of_this_process(std::string_view kind);

/// Returns the host name of this machine.
std::string machine_name();

}  // namespace weft
