#pragma once
/// Collects what an agent tells the trainer each second.

#include <cstdint>

#include "actors/host/host_run.hpp"
#include "actors/protocol/host_messages.hpp"

namespace weft {

/// Returns the commits, the rows and the processes of this host, which has been prepared for this
/// generation.
HostNews news_of(const HostRun& host, std::uint64_t generation);

}  // namespace weft
