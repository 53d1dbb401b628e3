#pragma once
/// Conversion between dtypes, which other kernels use too.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

Kernel convert(const TensorType& from, DType to);

}  // namespace weft::kernels
