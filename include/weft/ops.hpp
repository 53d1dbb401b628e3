#pragma once
/// Operations on tensors: elementwise, reductions, shape.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
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
Tensor atan2(Operand y, Operand x);  ///< the angle of the point (x, y), from -pi to pi
/// C's a % b, which has a's sign (torch.fmod), and Python's, which has b's (torch.remainder).
Tensor fmod(Operand a, Operand b);
Tensor remainder(Operand a, Operand b);
/// pred; of other dtypes, a number is true unless it is 0.
Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_xor(Operand a, Operand b);
Tensor logical_not(Operand x);
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
Tensor tan(Operand x);
Tensor log1p(Operand x);  ///< ln(1 + x)
Tensor expm1(Operand x);  ///< e^x - 1
Tensor erf(Operand x);
Tensor floor(Operand x);
Tensor ceil(Operand x);
Tensor round(Operand x);  ///< to the nearest integer; of two to the even one
Tensor sign(Operand x);
Tensor abs(Operand x);
/// torch.clamp with numbers; one of them may be left out. A NaN stays.
Tensor clamp(Operand x, std::optional<double> min, std::optional<double> max = std::nullopt);
/// x, with `value` where the pred `mask` holds.
Tensor masked_fill(Operand x, Operand mask, Operand value);
/// x as a constant to grad (torch.Tensor.detach).
Tensor stop_gradient(Operand x);
Tensor relu(Operand x);  ///< gradient 0 at 0, as torch
Tensor cast(Operand x, DType dtype);

// Reductions over `dims` (all where empty; negative counts from the end).
Tensor sum(Operand x, std::vector<int> dims = {}, bool keepdim = false);
Tensor mean(Operand x, std::vector<int> dims = {}, bool keepdim = false);
Tensor amax(Operand x, std::vector<int> dims = {}, bool keepdim = false);
Tensor amin(Operand x, std::vector<int> dims = {}, bool keepdim = false);
Tensor any(Operand x, std::vector<int> dims = {}, bool keepdim = false);  ///< pred: some isn't 0
Tensor all(Operand x, std::vector<int> dims = {}, bool keepdim = false);  ///< pred: none is 0
/// torch.var and torch.std: sum((x - mean)^2) / (n - correction), and its root.
Tensor var(Operand x, std::vector<int> dims = {}, int correction = 1, bool keepdim = false);
Tensor stddev(Operand x, std::vector<int> dims = {}, int correction = 1, bool keepdim = false);
/// torch.linalg.vector_norm: sum(|x|^p)^(1/p). p = infinity: the largest |x|, -infinity: the
/// smallest, 0: how many aren't 0.
Tensor norm(Operand x, double p = 2, std::vector<int> dims = {}, bool keepdim = false);
Tensor logsumexp(Operand x, std::vector<int> dims = {}, bool keepdim = false);
/// i32: the index of the largest element along dim, of equal ones the first; a NaN is largest.
/// Without dim: the index in x flattened. argmin: of the smallest.
Tensor argmax(Operand x, std::optional<int> dim = std::nullopt, bool keepdim = false);
Tensor argmin(Operand x, std::optional<int> dim = std::nullopt, bool keepdim = false);

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
/// A dim of size 1 more, or less; squeeze without dim removes all of size 1.
Tensor unsqueeze(Operand x, int dim);
Tensor squeeze(Operand x, std::optional<int> dim = std::nullopt);
Tensor flatten(Operand x, int first = 0, int last = -1);  ///< makes dims first to last one dim
Tensor stack(const std::vector<Tensor>& tensors, int dim = 0,
             std::source_location loc = std::source_location::current());
/// Parts of dim, of `size` (the last may be smaller) or of these sizes; chunk: at most `count`.
std::vector<Tensor> split(Operand x, std::int64_t size, int dim = 0);
std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& sizes, int dim = 0);
std::vector<Tensor> chunk(Operand x, std::int64_t count, int dim = 0);
/// torch.Tensor.repeat: x so many times along each dim; further counts in front make new dims.
Tensor repeat(Operand x, const std::vector<std::int64_t>& counts);
/// torch.roll: moves elements along dim by `shift`, those beyond its end to its beginning.
Tensor roll(Operand x, std::int64_t shift, int dim);
/// The last two dims' lower or upper triangle, from `diagonal` on; the rest is 0.
Tensor tril(Operand x, std::int64_t diagonal = 0);
Tensor triu(Operand x, std::int64_t diagonal = 0);
/// index is i32 of any shape; the result has a last dim of `num_classes`, of 0 and one 1. An index
/// out of range ends the run; the message has its value and this call's line.
Tensor one_hot(const Tensor& index, std::int64_t num_classes, DType dtype = DType::f32,
               std::source_location loc = std::source_location::current());
/// x's elements at these places along dim; index is i32[n]. Out of range as in one_hot.
Tensor index_select(Operand x, int dim, const Tensor& index);
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
/// torch.randn: f32 of the standard normal distribution.
Tensor randn(const Shape& shape, std::source_location loc = std::source_location::current());
/// torch.randint: i32 from low to high - 1, at most 2^24 numbers.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               std::source_location loc = std::source_location::current());
/// torch.bernoulli: 1 with the probability that p's element is, else 0, in p's dtype.
Tensor bernoulli(Operand p);

}  // namespace weft
