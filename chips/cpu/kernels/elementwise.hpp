#pragma once
/// Makes kernels that convert between dtypes, for other kernels.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

Kernel convert(const TensorType& from, DType to);

}  // namespace weft::kernels
