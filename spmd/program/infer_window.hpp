#pragma once
/// Shape inference of the ops that slide a window. For infer.cpp.

#include <weft/spmd/program/infer.hpp>

namespace weft::infer {

/// convolution, reduce_window, select_and_scatter.
TensorType window_op(const OpSignature& op);

}  // namespace weft::infer
