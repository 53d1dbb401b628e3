#pragma once
/// Operations on tensors: elementwise, reductions, shape.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <vector>

#include <weft/tensor.hpp>

namespace weft {

// Elementwise, with numpy's broadcasting; a number takes the tensor's dtype.
Tensor operator+(Operand a, Operand b);
Tensor operator-(Operand a, Operand b);
Tensor operator*(Operand a, Operand b);
Tensor operator/(Operand a, Operand b);
Tensor operator-(Operand x);
Tensor maximum(Operand a, Operand b);
Tensor minimum(Operand a, Operand b);
Tensor pow(Operand a, Operand b);
Tensor equal(Operand a, Operand b);
Tensor not_equal(Operand a, Operand b);
Tensor less(Operand a, Operand b);
Tensor less_equal(Operand a, Operand b);
Tensor greater(Operand a, Operand b);
Tensor greater_equal(Operand a, Operand b);
Tensor isfinite(Operand x);  ///< pred: neither infinite nor NaN
Tensor where(Operand condition, Operand on_true, Operand on_false);
Tensor exp(Operand x);
Tensor log(Operand x);
Tensor sqrt(Operand x);
Tensor rsqrt(Operand x);
Tensor tanh(Operand x);
Tensor sigmoid(Operand x);
Tensor softplus(Operand x);  ///< ln(1 + e^x)
Tensor sin(Operand x);
Tensor cos(Operand x);
Tensor abs(Operand x);
Tensor relu(Operand x);  ///< gradient 0 at 0, as torch
Tensor cast(Operand x, DType dtype);

// Reductions over `dims` (all where empty; negative counts from the end).
Tensor sum(Operand x, std::vector<int> dims = {}, bool keepdim = false);
Tensor mean(Operand x, std::vector<int> dims = {}, bool keepdim = false);
Tensor amax(Operand x, std::vector<int> dims = {}, bool keepdim = false);

// Shape.
Tensor reshape(Operand x, const Shape& shape);
Tensor reshape(Operand x, std::initializer_list<std::int64_t> sizes);  ///< one may be -1
Tensor transpose(Operand x, int dim0, int dim1);
Tensor permute(Operand x, std::vector<int> perm);
Tensor broadcast_to(Operand x, const Shape& shape);
/// Python's x[begin:end:step] of one dim, step > 0; cat is torch's, pad numpy's ({before, after}).
Tensor slice(Operand x, int dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1);
Tensor cat(const std::vector<Tensor>& tensors, int dim = 0,
           std::source_location loc = std::source_location::current());
Tensor pad(Operand x, const std::vector<std::array<std::int64_t, 2>>& widths, double value = 0);
/// Reverses the order of elements along the dims.
Tensor flip(Operand x, const std::vector<int>& dims);
/// torch.narrow: `length` elements of one dim from `start` on, an i32[], clamped to 0..size-length.
/// `start` is data: another value needs no new program.
Tensor narrow(Operand x, int dim, const Tensor& start, std::int64_t length);
/// torch.index_add along dim 0: x with source[i] added to row index[i]. index is i32 of any shape,
/// source has the shape index.shape + x's other dims. Rows for an index out of range are dropped.
Tensor index_add(Operand x, const Tensor& index, const Tensor& source);

// Random tensors. Numbers come from Philox, a counter-based generator. They depend on the seed, the
// step, the number of random calls before in the step, and the element's index in the global
// tensor, but not on the mesh or the sharding. A step that runs again gets the same numbers.

/// The seed of all random numbers: parameters' initial values, rand, dropout. One per thread; the
/// trainer sets it from RunConfig::seed.
void manual_seed(std::uint64_t seed);
/// The calling thread's seed.
std::uint64_t initial_seed();

/// torch.rand: f32, uniform in [0, 1).
Tensor rand(const Shape& shape, std::source_location loc = std::source_location::current());

}  // namespace weft
