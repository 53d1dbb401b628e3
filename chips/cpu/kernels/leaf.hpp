#pragma once
/// Makes kernels of fills: ops whose result has the same value in all elements.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Returns the kernel of an op for which Program::is_fill() is true.
Kernel fill(const Program& program, OpId op);

}  // namespace weft::kernels
