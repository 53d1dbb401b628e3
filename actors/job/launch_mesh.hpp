#pragma once
/// Reads the mesh of `weft launch --mesh data=2,model=2` from WEFT_LAUNCH_MESH.

#include <weft/job/config.hpp>

namespace weft {

/// Replaces the program's mesh with the mesh of the variable, if it is set. Throws
/// invalid_argument.
void apply_launch_mesh(SpmdConfig& spmd);

}  // namespace weft
