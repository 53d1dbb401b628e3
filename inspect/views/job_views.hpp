#pragma once
/// JobViews: writes the views of `weft inspect` as text and as JSON. docs/inspect.md has the
/// schemas.

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns a list of jobs, one per line.
std::string ps_text(std::span<const Snapshot> jobs);
/// Returns the list as JSON. `systems` are the actor systems, as systems_json() returns them.
std::string ps_json(std::span<const Snapshot> jobs,
                    const nlohmann::json& systems);  ///< schema weft.ps/1

/// Returns a text about one job: its parts and its progress.
std::string show_text(const Snapshot& job);
std::string show_json(const Snapshot& job);  ///< schema weft.show/1

/// Returns a list of the job's actors, one per line.
std::string actors_text(const Snapshot& job);
std::string actors_json(const Snapshot& job);  ///< schema weft.actors/1

/// Return the job's chips as a grid by their positions in the mesh, with the last axis from left to
/// right. A cell has a letter for the chip's state, or its step. `colours` turns on ANSI colors.
std::string mesh_text(const Snapshot& job, bool colours);
std::string mesh_steps_text(const Snapshot& job, bool colours);
std::string mesh_json(const Snapshot& job);  ///< schema weft.mesh/1

}  // namespace weft
