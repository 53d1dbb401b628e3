#pragma once
/// The views of `weft inspect` as text and as JSON; docs/inspect.md has the schemas.

#include <span>
#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Jobs, one a line.
std::string ps_text(std::span<const Snapshot> jobs);
std::string ps_json(std::span<const Snapshot> jobs);  ///< weft.ps/1

/// One job: what it is made of, how far it is.
std::string show_text(const Snapshot& job);
std::string show_json(const Snapshot& job);  ///< weft.show/1

/// Its actors, one a line.
std::string actors_text(const Snapshot& job);
std::string actors_json(const Snapshot& job);  ///< weft.actors/1

/// Its chips as they stand in the mesh, the last axis from left to right: a letter for the state of
/// each, or its step. `colours`: ANSI's.
std::string mesh_text(const Snapshot& job, bool colours);
std::string mesh_steps_text(const Snapshot& job, bool colours);
std::string mesh_json(const Snapshot& job);  ///< weft.mesh/1

}  // namespace weft
