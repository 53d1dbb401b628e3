#pragma once
/// Tensors that are made of no data: torch.zeros, torch.arange and the like. They are constants of
/// the program, and each chip makes its part of them.

#include <cstdint>
#include <source_location>

#include <weft/tensor.hpp>

namespace weft {

Tensor zeros(const Shape& shape, DType dtype = DType::f32,
             std::source_location loc = std::source_location::current());
Tensor ones(const Shape& shape, DType dtype = DType::f32,
            std::source_location loc = std::source_location::current());
/// They have x's shape and dtype.
Tensor zeros_like(const Tensor& x, std::source_location loc = std::source_location::current());
Tensor ones_like(const Tensor& x, std::source_location loc = std::source_location::current());
Tensor full_like(const Tensor& x, double value,
                 std::source_location loc = std::source_location::current());

/// torch.arange: start, start + step, ... up to `end`, which isn't among them. Computed in f64, or
/// in i64 for a dtype of integers, and rounded once. Throws invalid_argument for a step of 0 or
/// away from `end`, for numbers that aren't finite, and for fractions in a dtype of integers.
Tensor arange(double start, double end, double step = 1, DType dtype = DType::i32,
              std::source_location loc = std::source_location::current());
/// From 0 on.
Tensor arange(double end, DType dtype = DType::i32,
              std::source_location loc = std::source_location::current());
/// torch.linspace: `steps` numbers at equal distances, from `start` to `end`, which are both among
/// them. Computed in f64 and rounded once. Throws invalid_argument for a dtype that isn't floating,
/// fewer steps than 0, and numbers that aren't finite.
Tensor linspace(double start, double end, std::int64_t steps, DType dtype = DType::f32,
                std::source_location loc = std::source_location::current());
/// 1 where the index of the row is that of the column, and 0 elsewhere: [n, n] or [rows, columns].
Tensor eye(std::int64_t n, DType dtype = DType::f32,
           std::source_location loc = std::source_location::current());
Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype = DType::f32,
           std::source_location loc = std::source_location::current());

}  // namespace weft
