#pragma once
/// Checks the options of an actor system and of its meshes.

#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_type.hpp>

namespace weft {

/// Returns the options with defaults filled in. Throws invalid_argument.
SystemOptions checked(SystemOptions options);

/// Throws invalid_argument for options that can't be, whatever else the system has.
void require_valid(const detail::ActorClass& type, const SpawnOptions& options);

/// Returns the name of the mesh.
const std::string& mesh_name(const detail::ActorClass& type, const SpawnOptions& options);

}  // namespace weft
