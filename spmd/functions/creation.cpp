#include <weft/tensor/creation.hpp>

#include <cmath>

#include <weft/ops/elementwise.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// The largest number of elements that arange() can return, because its indices have 32 bits.
constexpr double kSizeMax = 0x1p31 - 1;

bool is_integer(double number) { return std::floor(number) == number; }

void check_range(const Call& call, double start, double end, double step, DType dtype) {
  if (!std::isfinite(start) || !std::isfinite(end) || !std::isfinite(step)) {
    call.refuse("from {} to {} by {}: expected finite numbers", start, end, step);
  }
  if (step == 0 || (end - start) / step < 0) {
    call.refuse("from {} to {} by {}: these steps don't reach the end; expected a step {} 0", start,
                end, step, end < start ? "below" : "above");
  }
  if (!is_floating(dtype) && !(is_integer(start) && is_integer(step))) {
    call.refuse("from {} by {} in {}: expected integers; use a floating dtype for fractions", start,
                step, to_string(dtype));
  }
  if ((end - start) / step > kSizeMax) {
    call.refuse("from {} to {} by {}: this range has {} numbers; expected at most {}", start, end,
                step, std::ceil((end - start) / step), kSizeMax);
  }
}

}  // namespace

Tensor zeros(const Shape& shape, DType dtype, std::source_location loc) {
  return full(shape, 0, dtype, loc);
}

Tensor ones(const Shape& shape, DType dtype, std::source_location loc) {
  return full(shape, 1, dtype, loc);
}

Tensor zeros_like(const Tensor& x, std::source_location loc) { return full_like(x, 0, loc); }

Tensor ones_like(const Tensor& x, std::source_location loc) { return full_like(x, 1, loc); }

Tensor full_like(const Tensor& x, double value, std::source_location loc) {
  const Call call("full_like", loc);
  const TensorType& type = call.type(Operand(x, loc));
  return full(type.shape, value, type.dtype, loc);
}

Tensor arange(double start, double end, double step, DType dtype, std::source_location loc) {
  check_range(Call("arange", loc), start, end, step, dtype);
  const auto size = static_cast<std::int64_t>(std::ceil((end - start) / step));
  const Tensor index = iota({size}, 0, is_floating(dtype) ? DType::f64 : DType::i64, loc);
  return cast({Operand(index, loc) * step + start, loc}, dtype);
}

Tensor arange(double end, DType dtype, std::source_location loc) {
  return arange(0, end, 1, dtype, loc);
}

Tensor linspace(double start, double end, std::int64_t steps, DType dtype,
                std::source_location loc) {
  const Call call("linspace", loc);
  if (!std::isfinite(start) || !std::isfinite(end)) {
    call.refuse("from {} to {}: expected finite numbers", start, end);
  }
  if (steps < 0) call.refuse("steps = {}: expected 0 or more", steps);
  if (!is_floating(dtype)) {
    call.refuse("dtype = {}: expected a floating dtype; use arange() for integers",
                to_string(dtype));
  }
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  const Tensor index = iota({steps}, 0, DType::f64, loc);
  // As in torch, each half of the numbers is computed from its end, so that both ends are exact.
  const Operand first(index, loc);
  const Tensor from_end = end - (static_cast<double>(steps - 1) - first) * step;
  const Tensor is_first_half = less(first, static_cast<double>((steps + 1) / 2));
  return cast({where({is_first_half, loc}, {first * step + start, loc}, {from_end, loc}), loc},
              dtype);
}

Tensor eye(std::int64_t n, DType dtype, std::source_location loc) { return eye(n, n, dtype, loc); }

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype, std::source_location loc) {
  const Call call("eye", loc);
  if (rows < 0 || columns < 0) {
    call.refuse("{} rows and {} columns: expected 0 or more of each", rows, columns);
  }
  const Tensor row = iota({rows, columns}, 0, DType::i32, loc);
  const Tensor column = iota({rows, columns}, 1, DType::i32, loc);
  return cast({equal({row, loc}, {column, loc}), loc}, dtype);
}

}  // namespace weft
