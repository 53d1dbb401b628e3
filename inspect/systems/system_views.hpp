#pragma once
/// Writes the views of actor systems as text and as JSON. docs/inspect.md has the schemas.

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// Lists systems, one per line; "" if there are none.
std::string systems_text(std::span<const SystemSnapshot> systems);
/// Returns the member `systems` of weft.ps/1.
nlohmann::json systems_json(std::span<const SystemSnapshot> systems);

/// Returns what the actor does: "primes() for 3.0 s", "waits for b[0].g in f()", "idle",
/// "starting", "ended"; or "stopped", "gone" if its process is that. `with_time` adds for how long
/// the function has run.
std::string doing_text(const SystemSnapshot& system, std::uint32_t row, bool with_time = true);

/// Shows a system's actors, one per line.
std::string system_actors_text(const SystemSnapshot& system);
/// Shows a system's meshes, and below each its actors.
std::string system_tree_text(const SystemSnapshot& system);
std::string system_json(const SystemSnapshot& system);  ///< weft.system/1

}  // namespace weft
