#pragma once
/// reduce over any dims.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// The order in which elements are combined follows from the shape and the dims alone; bf16 is
/// combined in f32 and rounded once. Empty `run`: no kernel for the dtype.
Kernel reduce(const Program& program, OpId op);

}  // namespace weft::kernels
