#pragma once
/// A process that joins an actor system whose keeper hasn't started it.

#include <memory>
#include <string>

#include "actors/user/actor_process.hpp"

namespace weft {

/// Claims a slot of the system and makes the memory of this process. report_joined() must follow.
/// Throws not_found or version if there is no such system, no_space.
std::shared_ptr<detail::ActorProcess> join_unasked(const std::string& system,
                                                   const ActorProcessOptions& options,
                                                   detail::ActorProcess::OnNews on_news);

}  // namespace weft
