#pragma once
/// Ops whose operands become parts of the result: pad, concatenate.

#include "actors/device/cpu/loops/strided.hpp"

namespace weft::kernels {

/// Copies a dense operand 0 into the view of the result; the rest of it stays as it is.
Kernel put_view(const StridedView& view, DType dtype);

Kernel assemble(const Program& program, OpId op);

}  // namespace weft::kernels
