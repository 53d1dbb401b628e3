#pragma once
/// Batched matrix multiplication: by oneDNN for f32 and bf16, by plain loops for other dtypes.

#include <functional>
#include <memory>

#include "chips/cpu/loops/kernel.hpp"
#include "chips/cpu/loops/strided.hpp"

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
  /// In each operand, either the rows or the columns have a stride of 1. If there is a single row,
  /// the columns must have it, because oneDNN 3 then ignores the given stride of the columns.
  Operand lhs;
  Operand rhs;
};

using MatmulFunction =
    std::function<void(const std::byte* lhs, const std::byte* rhs, std::byte* result)>;

/// Returns the dtype in which oneDNN multiplies operands of this dtype. This is bf16 for operands
/// of bf16 if the processor has avx512_bf16, whose instructions sum two products at a time in f32.
/// Otherwise it is f32.
DType multiplied_dtype(DType dtype);

/// Returns the function that multiplies, or null for f16 and pred. The function runs only on the
/// calling thread, whatever OpenMP's thread count is. For bf16, multiplied_dtype() must return
/// bf16.
MatmulFunction prepare_matmul(const Matmul& matmul, DType dtype, const ChipContext& chip);

}  // namespace weft::kernels
