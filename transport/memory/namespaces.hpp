#pragma once
/// Namespaces of processes, in which pids and times count: namespaces(7).

#include <cstdint>
#include <string_view>

namespace weft {

/// The number of this process's namespace of a kind: "pid", "time". 0 where /proc doesn't say it.
std::uint64_t namespace_of_this_process(std::string_view kind);

}  // namespace weft
