#pragma once
/// Shape inference of the ops that a value tells where to take elements or to put them, and of
/// rng_bit_generator. For infer.cpp.

#include <weft/spmd/program/infer.hpp>

namespace weft::infer {

/// check_index, gather, scatter, dynamic_slice, dynamic_update_slice, rng_bit_generator.
TensorType index_op(const OpSignature& op);

}  // namespace weft::infer
