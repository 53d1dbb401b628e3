#include <weft/ops/elementwise.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

Tensor reduce(std::string_view name, ReduceKind kind, const Operand& x,
              const std::vector<int>& dims, bool keepdim) {
  Call call(name, x.loc());
  Shape shape = call.type(x).shape;
  const Dims reduced = call.dims_of(dims, shape.size());
  const ValueId value = call->reduce(kind, call.value(x), reduced);
  if (!keepdim) return call.result(value);
  for (const std::int64_t dim : reduced) shape[static_cast<int>(dim)] = 1;
  return call.result(call->reshape(value, shape));
}

/// Applies the function in f32 if bf16 or f16 would lose precision: under autocast, and if x has
/// one of these dtypes. Without autocast, rounds the result to x's dtype. Returns nothing if
/// neither applies.
template <typename F>
std::optional<Tensor> through_f32(Call& call, const Operand& x, F function) {
  if (call.widens(x)) return function(Operand(call.widened(x), x.loc()));
  if (!is_half(call.type(x).dtype)) return {};
  return call.rounded_once(x, [&](const Tensor& wide) { return function(Operand(wide, x.loc())); });
}

/// Returns total^power, with gradient 0 instead of infinity where total is 0.
Tensor root(const Tensor& total, double power) {
  const Tensor is_zero = equal(total, 0.0);
  const Tensor positive = where(is_zero, 1.0, total);
  return where(is_zero, 0.0, power == 0.5 ? sqrt(positive) : pow(positive, power));
}

/// Returns |x|^p, with gradient 0 at 0.
Tensor powers_of(const Operand& x, double p) {
  if (p == 2) return x * x;
  const Tensor is_zero = equal(x, 0.0);
  const double at_zero = p > 0 ? 0.0 : std::numeric_limits<double>::infinity();
  return where(is_zero, at_zero, pow(abs(where(is_zero, 1.0, x)), p));
}

/// Returns 1 where x isn't 0, else 0. The dtype is i32, for which the reduction of an empty dim is
/// defined.
Tensor ones_where_true(const Operand& x) { return cast(not_equal(x, 0.0), DType::i32); }

/// Returns the first index along `dim` at which x is NaN or equals `best`. `best` is the maximum or
/// the minimum of x along `dim`.
Tensor first_place(Call& call, const Tensor& x, const Tensor& best, int dim, bool keepdim) {
  Tensor found = equal(x, best);
  if (is_floating(call.type(x).dtype)) found = logical_or(found, not_equal(x, x));
  const auto size = static_cast<double>(x.shape()[dim]);
  return amin(where(found, iota(x.shape(), dim), size - 1), {dim}, keepdim);
}

/// Returns the product along one dim, which gets size 1. Multiplies the two halves of the dim until
/// one element remains, so that gradients need no division.
Tensor multiplied(const Tensor& x, int dim) {
  Tensor result = x;
  for (std::int64_t size = x.shape()[dim]; size > 1; size = (size + 1) / 2) {
    const std::int64_t half = size / 2;
    const Tensor pairs = slice(result, dim, 0, half) * slice(result, dim, half, 2 * half);
    result = size % 2 == 0 ? pairs : cat({pairs, slice(result, dim, size - 1, size)}, dim);
  }
  return result;
}

Tensor arg_extremum(const char* name, ReduceKind kind, const Operand& x, std::optional<int> dim,
                    bool keepdim) {
  Call call(name, x.loc());
  const Shape& shape = call.type(x).shape;
  if (!dim) {
    const Tensor flat = reshape(x, {-1});
    const Tensor place = arg_extremum(name, kind, Operand(flat, x.loc()), 0, false);
    return keepdim ? reshape(place, Shape(Dims(static_cast<std::size_t>(shape.size()), 1))) : place;
  }
  if (shape.size() == 0 && (*dim == 0 || *dim == -1)) return full({}, 0, DType::i32, x.loc());
  const int axis = call.dim_of(*dim, shape.size());
  if (shape[axis] == 0) call.refuse("dim {} of {} has no elements", *dim, call.node(x)->label());
  return first_place(call, x.tensor(), reduce(name, kind, x, {axis}, true), axis, keepdim);
}

}  // namespace

Tensor sum(Operand x, std::vector<int> dims, bool keepdim) {
  Call call("sum", x.loc());
  if (is_summed_as_i32(call.type(x).dtype)) {
    return sum(cast(x, DType::i32), std::move(dims), keepdim);
  }
  return reduce("sum", ReduceKind::add, x, dims, keepdim);
}

Tensor prod(Operand x, std::vector<int> dims, bool keepdim) {
  Call call("prod", x.loc());
  if (is_summed_as_i32(call.type(x).dtype)) {
    return prod(cast(x, DType::i32), std::move(dims), keepdim);
  }
  const TensorType& type = call.type(x);
  const Dims all = call.dims_of(dims, type.shape.size());
  Shape shape = type.shape;
  Dims kept;
  for (const std::int64_t dim : all) shape[static_cast<int>(dim)] = 1;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (std::ranges::count(all, dim) == 0) kept.push_back(shape[dim]);
  }
  if (type.num_elements() == 0) {
    return full(keepdim ? shape : Shape(kept), 1, type.dtype, x.loc());
  }
  const Tensor product = call.rounded_once(x, [&](Tensor factors) {
    for (const std::int64_t dim : all) factors = multiplied(factors, static_cast<int>(dim));
    return factors;
  });
  return keepdim ? product : reshape(product, Shape(kept));
}

Tensor mean(Operand x, std::vector<int> dims, bool keepdim) {
  Call call("mean", x.loc());
  if (call.type(x).num_elements() == 0) {
    call.refuse("{} has no elements, so the mean would be NaN; skip empty batches",
                call.node(x)->label());
  }
  const auto count = static_cast<double>(call.type(x).num_elements());
  return call.rounded_once(x, [&](const Tensor& wide) {
    const Tensor total = reduce("mean", ReduceKind::add, wide, dims, keepdim);
    return total * (static_cast<double>(total.num_elements()) / count);
  });
}

Tensor amax(Operand x, std::vector<int> dims, bool keepdim) {
  return reduce("amax", ReduceKind::max, x, dims, keepdim);
}

Tensor amin(Operand x, std::vector<int> dims, bool keepdim) {
  return reduce("amin", ReduceKind::min, x, dims, keepdim);
}

Tensor any(Operand x, std::vector<int> dims, bool keepdim) {
  Call call("any", x.loc());
  return greater(amax(ones_where_true(x), std::move(dims), keepdim), 0.0);
}

Tensor all(Operand x, std::vector<int> dims, bool keepdim) {
  Call call("all", x.loc());
  return greater(amin(ones_where_true(x), std::move(dims), keepdim), 0.0);
}

Tensor var(Operand x, std::vector<int> dims, int correction, bool keepdim) {
  Call call("var", x.loc());
  const auto of_f32 = [&](Operand wide) { return var(wide, dims, correction, keepdim); };
  if (const auto result = through_f32(call, x, of_f32)) return *result;
  const auto size = static_cast<double>(call.type(x).num_elements());
  const Tensor centred = x - mean(x, dims, true);
  const Tensor total = sum(centred * centred, std::move(dims), keepdim);
  const double count = size / static_cast<double>(std::max<std::int64_t>(total.num_elements(), 1));
  return total * (1 / std::max(count - correction, 0.0));
}

Tensor stddev(Operand x, std::vector<int> dims, int correction, bool keepdim) {
  Call call("stddev", x.loc());
  const auto of_f32 = [&](Operand wide) { return stddev(wide, dims, correction, keepdim); };
  if (const auto result = through_f32(call, x, of_f32)) return *result;
  return root(var(x, std::move(dims), correction, keepdim), 0.5);
}

Tensor norm(Operand x, double p, std::vector<int> dims, bool keepdim) {
  Call call("norm", x.loc());
  if (std::isnan(p)) call.refuse("p = {}: expected a number", p);
  const auto of_f32 = [&](Operand wide) { return norm(wide, p, dims, keepdim); };
  if (const auto result = through_f32(call, x, of_f32)) return *result;
  if (p == 0) return sum(cast(not_equal(x, 0.0), call.type(x).dtype), std::move(dims), keepdim);
  if (p == 1) return sum(abs(x), std::move(dims), keepdim);
  if (std::isinf(p)) {
    return p > 0 ? amax(abs(x), std::move(dims), keepdim) : amin(abs(x), std::move(dims), keepdim);
  }
  const Tensor total = sum(powers_of(x, p), std::move(dims), keepdim);
  return p > 0 ? root(total, 1 / p) : pow(total, 1 / p);
}

Tensor logsumexp(Operand x, std::vector<int> dims, bool keepdim) {
  Call call("logsumexp", x.loc());
  if (!is_floating(call.type(x).dtype)) {
    return logsumexp(cast(x, DType::f32), std::move(dims), keepdim);
  }
  const auto of_f32 = [&](Operand wide) { return logsumexp(wide, dims, keepdim); };
  if (const auto result = through_f32(call, x, of_f32)) return *result;
  const Tensor largest = stop_gradient(amax(x, dims, true));
  const Tensor shift = where(isfinite(largest), largest, 0.0);  // avoids infinity - infinity, NaN
  const Tensor total = log(sum(exp(x - shift), std::move(dims), keepdim));
  return total + reshape(shift, total.shape());
}

Tensor argmax(Operand x, std::optional<int> dim, bool keepdim) {
  return arg_extremum("argmax", ReduceKind::max, x, dim, keepdim);
}

Tensor argmin(Operand x, std::optional<int> dim, bool keepdim) {
  return arg_extremum("argmin", ReduceKind::min, x, dim, keepdim);
}

}  // namespace weft
