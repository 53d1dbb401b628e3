#pragma once
/// Makes the windows of convolutions and pools, and checks torch's options. Only the files of this
/// folder use these functions.

#include <span>
#include <vector>

#include <weft/ops/convolution.hpp>
#include <weft/ops/shapes.hpp>

#include "spmd/program/window.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {

/// The window options of torch, with one number for each spatial dim.
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

/// The images of x, as `batch` of shape [N,C,spatial..]. If x lacks N, the batch has one image.
struct Images {
  Tensor batch;
  bool is_one;  ///< x lacks N, so the result must lack it too
};
Images images(Call& call, const Operand& x, int spatial_dims);
/// Removes the dim N from the result if x lacked it.
inline Tensor as_given(const Images& x, const Tensor& result) {
  return x.is_one ? squeeze(result, 0) : result;
}

/// Refuses numbers outside the range [`least`, 2^20].
void expect_from(const Call& call, std::string_view name, std::span<const std::int64_t> numbers,
                 std::int64_t least);
/// Returns windows over the spatial dims of x[N,C,spatial..]. Refuses a dim into which no window
/// fits.
std::vector<WindowDim> windows(const Call& call, const Tensor& x, const WindowOptions& options);
/// Returns windows with padding such that the result has the spatial sizes of x.
std::vector<WindowDim> same_windows(const Call& call, const Tensor& x,
                                    const WindowOptions& options);
/// Returns windows for a pool over x. Unlike the result of windows(), they also have entries for
/// the dims N and C.
std::vector<WindowDim> pool_windows(const Call& call, const Tensor& x,
                                    const WindowOptions& options);

}  // namespace weft
