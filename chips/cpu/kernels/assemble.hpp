#pragma once
/// Ops whose operands become parts of the result: pad, concatenate.

#include "chips/cpu/loops/strided.hpp"

namespace weft::kernels {

/// Copies dense operand 0 into the view of the result. The rest of the result stays unchanged.
Kernel put_view(const StridedView& view, DType dtype);

Kernel assemble(const Program& program, OpId op);

}  // namespace weft::kernels
