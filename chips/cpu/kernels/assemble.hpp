#pragma once
/// Kernels of ops whose operands become parts of the result: pad and concatenate.

#include "chips/cpu/loops/strided.hpp"

namespace weft::kernels {

/// Makes a kernel that copies dense operand 0 to the elements of the result that `view` describes,
/// and leaves the other elements unchanged.
Kernel put_view(const StridedView& view, DType dtype);

Kernel assemble(const Program& program, OpId op);

}  // namespace weft::kernels
