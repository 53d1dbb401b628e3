#pragma once
/// f16 by the processor's instructions that convert it (F16C). They are several times as fast as
/// F16's own conversions, and give the same bits.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Converts between f16 and f32. Empty for other dtypes, and if the processor doesn't have these
/// instructions.
Kernel convert_by_f16c(std::int64_t size, DType from, DType to);

/// Does an elementwise op on f16 block by block, by the kernel `of_f32` that does it for f32. If
/// `rounds`, its result is rounded to f16; otherwise the result has one byte. Empty if the
/// processor doesn't have these instructions.
Kernel by_f32_blocks(std::int64_t size, std::size_t num_operands, bool rounds, Kernel of_f32);

}  // namespace weft::kernels
