#include <weft/ops/convolution.hpp>

#include <algorithm>

#include <weft/ops/elementwise.hpp>

#include "spmd/functions/window_dims.hpp"

namespace weft {
namespace {

/// Splits dim `dim` into [groups, size / groups].
ValueId grouped(Call& call, ValueId x, int dim, std::int64_t groups) {
  const Shape shape = call->type(x).shape;
  Dims sizes(shape.begin(), shape.end());
  sizes[static_cast<std::size_t>(dim)] /= groups;
  sizes.insert(sizes.begin() + dim, groups);
  return call->reshape(x, Shape(sizes));
}

/// Returns the list of the dims `first`, `second`, and `spatial` consecutive dims from `from` on.
Dims sides(std::int64_t first, std::int64_t second, std::int64_t from, std::size_t spatial) {
  Dims dims{first, second};
  for (std::size_t i = 0; i < spatial; ++i) dims.push_back(from + static_cast<std::int64_t>(i));
  return dims;
}

/// Returns the convolution of x and the weight. Dim `input` of the weight, 0 or 1, has the input
/// channels; the other of these dims has the output channels. Both are divided into `groups` parts.
/// The caller has set the fields `window` and `reversed` of `how`.
ValueId convolved(Call& call, const Tensor& x, const Tensor& weight, std::int64_t groups, int input,
                  Convolution how) {
  const std::size_t spatial = how.window.size();
  ValueId lhs = call.value(x);
  ValueId rhs = call.value(weight);
  if (groups == 1) {
    how.lhs = how.result = sides(0, 1, 2, spatial);
    how.rhs = sides(input, 1 - input, 2, spatial);
    return call->convolution(lhs, rhs, how);
  }
  lhs = grouped(call, lhs, 1, groups);
  rhs = grouped(call, rhs, 0, groups);
  how.lhs = how.result = sides(0, 2, 3, spatial);
  how.rhs = sides(1 + input, 2 - input, 3, spatial);
  how.group = {1, 0, 1};
  const ValueId result = call->convolution(lhs, rhs, how);
  const Shape shape = call->type(result).shape;
  Dims sizes(shape.begin(), shape.end());
  sizes[1] *= sizes[2];
  sizes.erase(sizes.begin() + 2);
  return call->reshape(result, Shape(sizes));
}

void expect_weight(const Call& call, const Tensor& x, const Tensor& weight, std::int64_t groups,
                   int input) {
  const TensorType& in = call.type(x);
  const TensorType& kernel = call.type(weight);
  if (groups < 1) call.refuse("groups = {}: expected 1 or more", groups);
  const bool fits = kernel.shape.size() == in.shape.size() && kernel.dtype == in.dtype &&
                    kernel.shape[input] * (input == 0 ? 1 : groups) == in.shape[1] &&
                    kernel.shape[0] % groups == 0;
  if (fits) return;
  call.refuse(
      "{} and the weight {} don't fit; with groups = {}, expected [N,C,spatial..] and "
      "[{},kernel..] of one dtype, {} a multiple of {}",
      call.node(x)->label(), call.node(weight)->label(), groups,
      input == 0 ? fmt::format("C,O/{}", groups) : fmt::format("O,C/{}", groups),
      input == 0 ? "C" : "O", groups);
}

ValueId with_bias(Call& call, ValueId result, const Tensor& bias) {
  if (!bias.defined()) return result;
  const TensorType type = call->type(result);
  if (call.type(bias) != TensorType{type.dtype, {type.shape[1]}}) {
    call.refuse("the bias {} doesn't fit: expected {}, one element for each output channel",
                call.node(bias)->label(), TensorType{type.dtype, {type.shape[1]}}.to_string());
  }
  const std::array<std::int64_t, 1> features{1};
  const ValueId addend = call->broadcast_in_dim(call.value(bias), type.shape, features);
  return call->binary(OpKind::add, result, addend);
}

Dims kernel_sizes(const Tensor& weight) {
  return {weight.shape().begin() + 2, weight.shape().end()};
}

template <int N>
Tensor conv(const char* name, const Operand& given, const Tensor& weight, const Tensor& bias,
            const ConvOptions<N>& options) {
  Call call(name, given.loc());
  if (call.lowers(given, weight, bias)) {
    return conv(name, Operand(call.lowered(given), given.loc()), call.lowered(weight),
                call.lowered(bias), options);
  }
  const Images x = images(call, given, N);
  expect_weight(call, x.batch, weight, options.groups, 1);
  const WindowOptions window{.kernel_size = kernel_sizes(weight),
                             .stride = list_of(options.stride),
                             .padding = list_of(options.padding),
                             .dilation = list_of(options.dilation)};
  const ValueId result =
      convolved(call, x.batch, weight, options.groups, 1,
                {.window = options.same_padding ? same_windows(call, x.batch, window)
                                                : windows(call, x.batch, window)});
  return as_given(x, call.result(with_bias(call, result, bias)));
}

/// Returns windows over x with which a normal convolution computes a transposed convolution.
template <int N>
std::vector<WindowDim> transposed_windows(const Call& call, const Tensor& x, const Dims& kernel,
                                          const ConvTransposeOptions<N>& options) {
  expect_from(call, "kernel_size", kernel, 1);
  expect_from(call, "stride", options.stride.sizes(), 1);
  expect_from(call, "padding", options.padding.sizes(), 0);
  expect_from(call, "output_padding", options.output_padding.sizes(), 0);
  expect_from(call, "dilation", options.dilation.sizes(), 1);
  std::vector<WindowDim> dims;
  for (int i = 0; i < N; ++i) {
    const std::int64_t more = options.output_padding[i];
    if (more >= std::max(options.stride[i], options.dilation[i])) {
      call.refuse("output_padding = {}: expected less than stride {} or dilation {}", more,
                  options.stride[i], options.dilation[i]);
    }
    const std::int64_t size = kernel[static_cast<std::size_t>(i)];
    const std::int64_t low = options.dilation[i] * (size - 1) - options.padding[i];
    dims.push_back({.size = size,
                    .low = low,
                    .high = low + more,
                    .base_dilation = options.stride[i],
                    .dilation = options.dilation[i]});
    if (window_count(dims.back(), x.shape()[i + 2]) < 1) {
      call.refuse("padding = {} removes the whole result of {} in dim {}", options.padding[i],
                  call.node(x)->label(), i + 2);
    }
  }
  return dims;
}

template <int N>
Tensor conv_transpose(const char* name, const Operand& given, const Tensor& weight,
                      const Tensor& bias, const ConvTransposeOptions<N>& options) {
  Call call(name, given.loc());
  if (call.lowers(given, weight, bias)) {
    return conv_transpose(name, Operand(call.lowered(given), given.loc()), call.lowered(weight),
                          call.lowered(bias), options);
  }
  const Images x = images(call, given, N);
  expect_weight(call, x.batch, weight, options.groups, 0);
  const ValueId result =
      convolved(call, x.batch, weight, options.groups, 0,
                {.window = transposed_windows(call, x.batch, kernel_sizes(weight), options),
                 .reversed = true});
  return as_given(x, call.result(with_bias(call, result, bias)));
}

}  // namespace

Tensor conv1d(Operand x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& options) {
  return conv("conv1d", x, weight, bias, options);
}
Tensor conv2d(Operand x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  return conv("conv2d", x, weight, bias, options);
}
Tensor conv3d(Operand x, const Tensor& weight, const Tensor& bias, const Conv3dOptions& options) {
  return conv("conv3d", x, weight, bias, options);
}

Tensor conv_transpose1d(Operand x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  return conv_transpose("conv_transpose1d", x, weight, bias, options);
}
Tensor conv_transpose2d(Operand x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  return conv_transpose("conv_transpose2d", x, weight, bias, options);
}
Tensor conv_transpose3d(Operand x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dOptions& options) {
  return conv_transpose("conv_transpose3d", x, weight, bias, options);
}

}  // namespace weft
