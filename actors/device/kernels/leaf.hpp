#pragma once
/// Fills.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

/// Of an op for which Program::is_fill.
Kernel fill(const Program& program, OpId op);

}  // namespace weft::kernels
