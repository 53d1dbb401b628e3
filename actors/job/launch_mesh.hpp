#pragma once
/// Reads the mesh of `weft launch --mesh data=2,model=2` from WEFT_LAUNCH_MESH. data=2x4 means that
/// 2 hosts with 4 chips each are along the axis.

#include <weft/job/config.hpp>

namespace weft {

/// If WEFT_LAUNCH_MESH is set, replaces the program's mesh with the one in the variable. Throws
/// invalid_argument.
void apply_launch_mesh(SpmdConfig& spmd);

}  // namespace weft
