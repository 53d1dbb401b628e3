#pragma once
/// Fills.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// The kernel of an op for which Program::is_fill holds.
Kernel fill(const Program& program, OpId op);

}  // namespace weft::kernels
