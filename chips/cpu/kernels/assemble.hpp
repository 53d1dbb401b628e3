#pragma once
/// Kernels of ops whose operands become parts of the result: pad and concatenate.

#include "chips/cpu/loops/strided.hpp"

namespace weft::kernels {

/// Makes a kernel that copies dense operand 0 into the view of the result. The rest of the result
/// stays unchanged.
Kernel put_view(const StridedView& view, DType dtype);

Kernel assemble(const Program& program, OpId op);

}  // namespace weft::kernels
