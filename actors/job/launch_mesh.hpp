#pragma once
/// Reads the mesh of `weft launch --mesh data=2,model=2` from WEFT_LAUNCH_MESH. "data=2x4" means
/// that the axis `data` spans 2 hosts with 4 chips each.

#include <weft/job/config.hpp>

namespace weft {

/// Replaces the program's mesh with the one in WEFT_LAUNCH_MESH, if that variable is set. Throws
/// invalid_argument.
void apply_launch_mesh(SpmdConfig& spmd);

}  // namespace weft
