#pragma once
/// Kernels on f16 that use the processor's instructions for conversion between f16 and f32 (F16C).
/// These are several times as fast as F16's own conversions, and give the same bits.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Makes a kernel that converts between f16 and f32. The kernel's `run` is empty for other dtypes,
/// and on a processor without F16C.
Kernel convert_by_f16c(std::int64_t size, DType from, DType to);

/// Makes the kernel of an elementwise op on f16. Block by block, it converts operands to f32 and
/// runs `of_f32`, the kernel of the op on f32. If `rounds`, it rounds results to f16; otherwise
/// results are single bytes (pred). The kernel's `run` is empty on a processor without F16C.
Kernel by_f32_blocks(std::int64_t size, std::size_t num_operands, bool rounds, Kernel of_f32);

}  // namespace weft::kernels
