#pragma once
/// What a training leaves that has to end before it is done.

#include <weft/weft.hpp>

namespace examples {

/// Reports a checkpoint with the parameters, as model.safetensors. All workers call it.
void save(weft::TrainContext& ctx, const weft::Module& net);

}  // namespace examples
