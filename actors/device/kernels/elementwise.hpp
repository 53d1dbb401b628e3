#pragma once
/// Elementwise ops: one flat loop each.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

/// negate .. convert, add .. logical_and, select. Empty `run`: no kernel for the dtype.
Kernel elementwise(const Program& program, OpId op);

Kernel convert(const TensorType& from, DType to);

}  // namespace weft::kernels
