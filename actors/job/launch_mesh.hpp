#pragma once
/// The mesh that `weft launch --mesh data=2,model=2` asks for, in WEFT_LAUNCH_MESH.

#include <weft/job/config.hpp>

namespace weft {

/// Puts it in place of the one that the program describes. Throws invalid_argument.
void apply_launch_mesh(SpmdConfig& spmd);

}  // namespace weft
