#pragma once
/// Conversion between f16 and f32 by the processor's instructions for it (F16C).

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// The result is that of F16's own conversions, bit for bit. Nothing for other dtypes, and where
/// the processor has no such instructions.
Kernel convert_by_f16c(std::int64_t size, DType from, DType to);

}  // namespace weft::kernels
