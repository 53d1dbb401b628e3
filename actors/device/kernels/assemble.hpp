#pragma once
/// Ops whose operands become parts of the result: pad, concatenate.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

Kernel assemble(const Program& program, OpId op);

}  // namespace weft::kernels
