#pragma once
/// Describes the windows that convolution, reduce_window and select_and_scatter slide over an
/// operand, and the attributes of these ops.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// A window along one dim. Element k of window o covers element i of the operand if `o * stride + k
/// * dilation - low == i * base_dilation`. All fields are numbers of elements.
struct WindowDim {
  std::int64_t size = 1;           ///< number of elements of a window
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
/// Returns the index of the element of an operand of `size` elements that element k of window o
/// covers; -1 if that is padding or between elements.
std::int64_t element_under(const WindowDim& window, std::int64_t o, std::int64_t k,
                           std::int64_t size);
/// Returns how many elements of an operand of `size` elements all windows cover together. An
/// element counts once for each window that covers it.
std::int64_t count_elements_under(const WindowDim& window, std::int64_t size, std::int64_t windows);
/// Returns the window with which the gradient is computed. It slides over `count` elements, one for
/// each window, and has `size` results. At result i it covers, in reverse order, the elements for
/// the windows that cover operand element i.
WindowDim transposed(const WindowDim& window, std::int64_t size, std::int64_t count);

/// A convolution: a matrix product, (batch x input feature) * (input feature x output feature),
/// summed over a window of the spatial dims. The lists contain numbers of dims of lhs, rhs and
/// result.
struct Convolution {
  std::vector<std::int64_t> lhs{};     ///< batch, input feature, spatial..
  std::vector<std::int64_t> rhs{};     ///< input feature, output feature, spatial..
  std::vector<std::int64_t> result{};  ///< batch, output feature, spatial..
  std::vector<WindowDim> window{};     ///< one per spatial dim; has the sizes of rhs
  /// If true, rhs is read in reverse order along all spatial dims. Because of this option, the
  /// gradients of a convolution are convolutions too.
  bool reversed = false;
  /// The group dims of lhs, rhs and result. For each index along these dims there is a separate
  /// convolution. The list is empty if there is only one convolution.
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
  std::vector<WindowDim> dims{};  ///< one per dim of the operand
};
std::vector<std::int64_t> to_attrs(const WindowReduction& reduction);
/// Reads the attributes, which are 1 word followed by 6 words per dim.
WindowReduction window_reduction_of(std::span<const std::int64_t> attrs);

}  // namespace weft
