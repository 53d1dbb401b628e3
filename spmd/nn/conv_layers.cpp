#include <weft/nn/conv_layers.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Throws invalid_argument if a size is below 1, or the groups don't divide the channels.
template <typename Options>
void expect_channels(const char* layer, int num_dims, const std::string& path,
                     const Options& options) {
  const auto& sizes = options.kernel_size.sizes();
  const std::int64_t least = *std::ranges::min_element(sizes);
  if (options.in_channels < 1 || options.out_channels < 1 || least < 1) {
    fail(Errc::invalid_argument,
         "{}{}d '{}': in_channels = {}, out_channels = {}, kernel_size = {}: expected 1 or more",
         layer, num_dims, path, options.in_channels, options.out_channels, least);
  }
  const std::int64_t groups = options.window.groups;
  if (groups < 1 || options.in_channels % groups != 0 || options.out_channels % groups != 0) {
    fail(Errc::invalid_argument,
         "{}{}d '{}': groups = {}: expected a divisor of in_channels {} and out_channels {}", layer,
         num_dims, path, groups, options.in_channels, options.out_channels);
  }
}

/// Returns the shape [outer, inner, kernel..] of a layer's weight.
template <int N>
Shape kernel_shape(std::int64_t outer, std::int64_t inner, const Spatial<N>& kernel) {
  DimList sizes{outer, inner};
  for (const std::int64_t size : kernel.sizes()) sizes.push_back(size);
  return Shape(std::span<const std::int64_t>(sizes));
}

}  // namespace

template <int N>
Conv<N>::Conv(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), window_(options.window) {
  expect_channels("Conv", N, path(), options);
  const std::int64_t out = options.out_channels;
  const Shape shape =
      kernel_shape<N>(out, options.in_channels / window_.groups, options.kernel_size);
  const double bound = 1 / std::sqrt(static_cast<double>(shape.num_elements() / out));
  weight = begin_uniform(add_parameter("weight", 0, shape), bound);
  if (options.bias) bias = begin_uniform(add_parameter("bias", 0, {out}), bound);
}

template <int N>
Tensor Conv<N>::operator()(const Tensor& x, std::source_location loc) const {
  if constexpr (N == 1) return conv1d(Operand(x, loc), weight, bias, window_);
  if constexpr (N == 2) return conv2d(Operand(x, loc), weight, bias, window_);
  if constexpr (N == 3) return conv3d(Operand(x, loc), weight, bias, window_);
}

template <int N>
ConvTranspose<N>::ConvTranspose(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), window_(options.window) {
  expect_channels("ConvTranspose", N, path(), options);
  const std::int64_t in = options.in_channels;
  const std::int64_t out = options.out_channels;
  const Shape shape = kernel_shape<N>(in, out / window_.groups, options.kernel_size);
  const double bound = 1 / std::sqrt(static_cast<double>(shape.num_elements() / in));
  weight = begin_uniform(add_parameter("weight", 0, shape), bound);
  if (options.bias) bias = begin_uniform(add_parameter("bias", 0, {out}), bound);
}

template <int N>
Tensor ConvTranspose<N>::operator()(const Tensor& x, std::source_location loc) const {
  if constexpr (N == 1) return conv_transpose1d(Operand(x, loc), weight, bias, window_);
  if constexpr (N == 2) return conv_transpose2d(Operand(x, loc), weight, bias, window_);
  if constexpr (N == 3) return conv_transpose3d(Operand(x, loc), weight, bias, window_);
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace weft
