#pragma once
/// Fills.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Of an op for which Program::is_fill.
Kernel fill(const Program& program, OpId op);

}  // namespace weft::kernels
