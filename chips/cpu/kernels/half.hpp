#pragma once
/// f16 by the processor's instructions that convert it (F16C): several times as fast as F16's own
/// conversions, and bit for bit the same.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Between f16 and f32. Nothing for other dtypes, and where the processor has no such instructions.
Kernel convert_by_f16c(std::int64_t size, DType from, DType to);

/// An elementwise op on f16 by the kernel `of_f32` that does it for f32, block by block. Its result
/// is rounded to f16, or else of one byte. Nothing where the processor has no such instructions.
Kernel by_f32_blocks(std::int64_t size, std::size_t num_operands, bool rounds, Kernel of_f32);

}  // namespace weft::kernels
