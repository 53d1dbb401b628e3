#pragma once
/// Lets a process join an actor system whose keeper hasn't started it.

#include <cstdint>
#include <memory>
#include <string>

#include "actors/user/actor_process.hpp"

namespace weft {

/// Claims a slot of the system, makes the memory of this process, and tells the keeper. `job` and
/// `worker` are passed to ActorProcess::report_joined(). Throws not_found if the system doesn't
/// exist, version if it has another version, and no_space.
std::shared_ptr<detail::ActorProcess> join_by_claim(const std::string& system,
                                                    const ActorProcessOptions& options,
                                                    detail::ActorProcess::OnNews on_news,
                                                    std::uint64_t job = 0,
                                                    std::uint32_t worker = 0);

}  // namespace weft
