#pragma once
/// Conversion between dtypes, which other kernels also use.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

Kernel convert(const TensorType& from, DType to);

}  // namespace weft::kernels
