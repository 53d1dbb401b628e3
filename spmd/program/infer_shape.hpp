#pragma once
/// Shape inference of the ops that only move elements. For infer.cpp.

#include <weft/spmd/program/infer.hpp>

namespace weft::infer {

/// reshape, transpose, broadcast_in_dim, slice, pad, concatenate, reverse.
TensorType shape_op(const OpSignature& op);

}  // namespace weft::infer
