#pragma once
/// Ops that a value tells where to take elements or to put them: gather, scatter, dynamic_slice,
/// dynamic_update_slice.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

Kernel indexing(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
