#pragma once
/// SystemViews: shows actor systems as text and as JSON. docs/inspect.md has the schemas.

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// Returns a list of systems, one per line; "" if there are none.
std::string systems_text(std::span<const SystemSnapshot> systems);
/// Returns the systems as the member `systems` of weft.ps/1.
nlohmann::json systems_json(std::span<const SystemSnapshot> systems);

/// Returns what the actor does: "primes() for 3.0 s", "waits for b[0].g in f()", "idle",
/// "starting", "ended". Returns "stopped" or "gone" if its process is stopped or gone. With
/// `with_time`, says how long the function has run.
std::string doing_text(const SystemSnapshot& system, std::uint32_t row, bool with_time = true);

/// Returns a system's actors, one per line.
std::string system_actors_text(const SystemSnapshot& system);
/// Returns a system's meshes, each followed by its actors.
std::string system_tree_text(const SystemSnapshot& system);
std::string system_json(const SystemSnapshot& system);  ///< schema weft.system/1

}  // namespace weft
