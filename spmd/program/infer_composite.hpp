#pragma once
/// Shape inference of the composite ops. For infer.cpp.

#include <weft/spmd/program/infer.hpp>

namespace weft::infer {

/// softmax .. attention_grad.
TensorType composite_op(const OpSignature& op);

}  // namespace weft::infer
