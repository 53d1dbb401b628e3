#pragma once
/// Batched matrix multiplication: by oneDNN in f32, by plain loops in other dtypes.

#include <functional>
#include <memory>

#include "actors/device/cpu/loops/kernel.hpp"
#include "actors/device/cpu/loops/strided.hpp"

namespace weft::kernels {

/// C[b.., m, n] = sum over k of A[b.., m, k] * B[b.., k, n]. C is dense. Every size is at least 1.
struct Matmul {
  /// The strides of an operand, in elements.
  struct Operand {
    Strides batch{};
    std::int64_t row = 0;
    std::int64_t column = 0;
  };
  Shape batch;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  Operand lhs;  ///< of each operand, the stride of the rows or of the columns is 1
  Operand rhs;
};

using MatmulFunction =
    std::function<void(const std::byte* lhs, const std::byte* rhs, std::byte* result)>;

/// Runs on the calling thread alone, whatever OpenMP's thread count is. Null for bf16, f16, pred.
MatmulFunction prepare_matmul(const Matmul& matmul, DType dtype, const ChipContext& chip);

}  // namespace weft::kernels
