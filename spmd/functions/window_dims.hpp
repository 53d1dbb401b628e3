#pragma once
/// The windows of convolutions and pools: checks of torch's options. For the files of this folder.

#include <span>
#include <vector>

#include <weft/convolution.hpp>
#include <weft/shapes.hpp>

#include "spmd/program/window.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {

/// torch's options, a number for each spatial dim.
struct WindowOptions {
  std::vector<std::int64_t> kernel_size;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  bool ceil_mode = false;
};

template <int N>
Dims list_of(const Spatial<N>& numbers) {
  return {numbers.sizes().begin(), numbers.sizes().end()};
}

/// x as [N,C,spatial..]: without N, as a batch of one image.
struct Images {
  Tensor batch;
  bool is_one;  ///< of results, leave N out
};
Images images(Call& call, const Operand& x, int spatial_dims);
/// The result for an image, or a batch, as x had it.
inline Tensor as_given(const Images& x, const Tensor& result) {
  return x.is_one ? squeeze(result, 0) : result;
}

/// Refuses numbers outside of `least` to 2^20.
void expect_from(const Call& call, std::string_view name, std::span<const std::int64_t> numbers,
                 std::int64_t least);
/// Windows over the spatial dims of x[N,C,spatial..], of which one at least fits into each.
std::vector<WindowDim> windows(const Call& call, const Tensor& x, const WindowOptions& options);
/// So much padding that the result has the input's spatial sizes.
std::vector<WindowDim> same_windows(const Call& call, const Tensor& x,
                                    const WindowOptions& options);
/// `windows` of a pool: of N and C, too.
std::vector<WindowDim> pool_windows(const Call& call, const Tensor& x,
                                    const WindowOptions& options);

}  // namespace weft
