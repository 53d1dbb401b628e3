#pragma once
/// Functions that make tensors without data, like torch.zeros and torch.arange. The tensors are
/// constants of the program, and each chip makes its own part.

#include <cstdint>
#include <source_location>

#include <weft/tensor/tensor.hpp>

namespace weft {

Tensor zeros(const Shape& shape, DType dtype = DType::f32,
             std::source_location loc = std::source_location::current());
Tensor ones(const Shape& shape, DType dtype = DType::f32,
            std::source_location loc = std::source_location::current());
/// The results have x's shape and dtype.
Tensor zeros_like(const Tensor& x, std::source_location loc = std::source_location::current());
Tensor ones_like(const Tensor& x, std::source_location loc = std::source_location::current());
Tensor full_like(const Tensor& x, double value,
                 std::source_location loc = std::source_location::current());

/// Returns start, start + step, ... up to, but not including, `end` (torch.arange). The numbers are
/// computed in f64, or in i64 for an integer dtype, and rounded once. Throws invalid_argument for a
/// step of 0 or away from `end`, for numbers that aren't finite, and for fractions in an integer
/// dtype.
Tensor arange(double start, double end, double step = 1, DType dtype = DType::i32,
              std::source_location loc = std::source_location::current());
/// Returns 0, 1, ... up to, but not including, `end`.
Tensor arange(double end, DType dtype = DType::i32,
              std::source_location loc = std::source_location::current());
/// Returns `steps` numbers at equal distances, from `start` to `end` inclusive (torch.linspace).
/// The numbers are computed in f64 and rounded once. Throws invalid_argument for a dtype that isn't
/// floating, fewer than 0 steps, and numbers that aren't finite.
Tensor linspace(double start, double end, std::int64_t steps, DType dtype = DType::f32,
                std::source_location loc = std::source_location::current());
/// Returns 1 where the row and column indices are equal, and 0 elsewhere: [n, n] or [rows,
/// columns].
Tensor eye(std::int64_t n, DType dtype = DType::f32,
           std::source_location loc = std::source_location::current());
Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype = DType::f32,
           std::source_location loc = std::source_location::current());

}  // namespace weft
