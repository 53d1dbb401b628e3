#pragma once
/// Describes the windows that convolution, reduce_window and select_and_scatter slide over an
/// operand, and the attributes of these ops.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// A window along one dim. Element k of window o lies on element i of the operand where `o * stride
/// + k * dilation - low == i * base_dilation`. All fields count elements.
struct WindowDim {
  std::int64_t size = 1;           ///< elements of a window
  std::int64_t stride = 1;         ///< distance between windows
  std::int64_t low = 0;            ///< padding before the operand; if negative, removes elements
  std::int64_t high = 0;           ///< padding after the operand; if negative, removes elements
  std::int64_t base_dilation = 1;  ///< distance between elements of the operand
  std::int64_t dilation = 1;       ///< distance between elements of a window

  friend bool operator==(const WindowDim&, const WindowDim&) = default;
};

/// Returns the length that `size` elements span if they are `dilation` apart.
std::int64_t dilated(std::int64_t size, std::int64_t dilation);
/// Returns the number of windows that fit on an operand of `size` elements.
std::int64_t window_count(const WindowDim& window, std::int64_t size);
/// Returns the element of an operand of `size` that element k of window o lies on; -1 if it lies in
/// the padding or between elements.
std::int64_t element_under(const WindowDim& window, std::int64_t o, std::int64_t k,
                           std::int64_t size);
/// Returns the total number of elements of an operand of `size` in all windows. An element counts
/// once for each window that contains it.
std::int64_t count_elements_under(const WindowDim& window, std::int64_t size, std::int64_t windows);
/// Returns the window of the gradient: it slides over `count` elements, one for each window, and
/// has `size` results. At result i it covers, in reverse order, the windows that contain element i.
WindowDim transposed(const WindowDim& window, std::int64_t size, std::int64_t count);

/// A matrix product, (batch x input feature) * (input feature x output feature), summed over a
/// window of the spatial dims. The lists name dims of the operands and the result.
struct Convolution {
  std::vector<std::int64_t> lhs{};     ///< batch, input feature, spatial..
  std::vector<std::int64_t> rhs{};     ///< input feature, output feature, spatial..
  std::vector<std::int64_t> result{};  ///< batch, output feature, spatial..
  std::vector<WindowDim> window{};     ///< per spatial dim; the sizes are those of rhs
  /// Says whether windows read rhs in reverse order along all spatial dims. With this, the
  /// gradients of a convolution are convolutions too.
  bool reversed = false;
  /// The group dim of lhs, rhs and result. Each index along it is a convolution of its own. The
  /// list is empty if there is only one convolution.
  std::vector<std::int64_t> group{};
};
std::vector<std::int64_t> to_attrs(const Convolution& convolution);
/// Reads the attribute words of a convolution.
Convolution convolution_of(std::span<const std::int64_t> attrs, const Shape& rhs);
/// Returns the number of spatial dims, given the number of attribute words; 0 if no convolution has
/// that many words.
std::size_t spatial_count(std::size_t attr_count);

/// The windows of a reduce_window, or of the select_and_scatter that is its gradient.
struct WindowReduction {
  ReduceKind kind = ReduceKind::add;
  std::vector<WindowDim> dims{};  ///< per dim of the operand
};
std::vector<std::int64_t> to_attrs(const WindowReduction& reduction);
/// Reads `attrs`, which has 1 word and then 6 words per dim.
WindowReduction window_reduction_of(std::span<const std::int64_t> attrs);

}  // namespace weft
