#pragma once
/// Writes the views of `weft inspect` as text and as JSON. docs/inspect.md has the schemas.

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Shows jobs, one per line.
std::string ps_text(std::span<const Snapshot> jobs);
/// `systems` are the actor systems, as systems_json() returns them.
std::string ps_json(std::span<const Snapshot> jobs,
                    const nlohmann::json& systems);  ///< weft.ps/1

/// Shows one job: its parts and its progress.
std::string show_text(const Snapshot& job);
std::string show_json(const Snapshot& job);  ///< weft.show/1

/// Shows the job's actors, one per line.
std::string actors_text(const Snapshot& job);
std::string actors_json(const Snapshot& job);  ///< weft.actors/1

/// Shows the job's chips in the mesh, with the last axis from left to right. A cell is a letter for
/// the chip's state, or its step. `colours` turns on ANSI colors.
std::string mesh_text(const Snapshot& job, bool colours);
std::string mesh_steps_text(const Snapshot& job, bool colours);
std::string mesh_json(const Snapshot& job);  ///< weft.mesh/1

}  // namespace weft
