#pragma once
/// Fills.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Returns the kernel of an op for which Program::is_fill() is true.
Kernel fill(const Program& program, OpId op);

}  // namespace weft::kernels
