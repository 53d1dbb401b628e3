#pragma once
/// Collects the news that an agent sends the trainer each second.

#include <cstdint>

#include "actors/host/host_run.hpp"
#include "actors/protocol/host_messages.hpp"

namespace weft {

/// Returns what this host has committed, its board rows and its processes. The host's memory is
/// prepared for `generation`.
HostNews news_of(const HostRun& host, std::uint64_t generation);

}  // namespace weft
