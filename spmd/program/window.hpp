#pragma once
/// Windows: what convolution, reduce_window and select_and_scatter slide over an operand, and the
/// attributes of these ops.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// Along one dim: element k of window o lies on element i of the operand where
/// `o * stride + k * dilation - low == i * base_dilation`. All counts are of elements.
struct WindowDim {
  std::int64_t size = 1;           ///< elements of a window
  std::int64_t stride = 1;         ///< from window to window
  std::int64_t low = 0;            ///< padding before the operand; negative takes elements away
  std::int64_t high = 0;           ///< and behind it
  std::int64_t base_dilation = 1;  ///< from element to element of the operand
  std::int64_t dilation = 1;       ///< from element to element of a window

  friend bool operator==(const WindowDim&, const WindowDim&) = default;
};

/// What `size` elements span that are `dilation` apart.
std::int64_t dilated(std::int64_t size, std::int64_t dilation);
/// How many windows lie on an operand of `size` elements.
std::int64_t window_count(const WindowDim& window, std::int64_t size);
/// The element of an operand of `size` on which element k of window o lies; -1 in the padding and
/// between elements.
std::int64_t element_under(const WindowDim& window, std::int64_t o, std::int64_t k,
                           std::int64_t size);
/// The window that leads back from the `count` windows to the operand's `size` elements: element
/// i's window has, in reverse order, the windows that element i is in.
WindowDim transposed(const WindowDim& window, std::int64_t size, std::int64_t count);

/// A matrix product, (batch x input feature) * (input feature x output feature), summed over a
/// window of the spatial dims. The lists name dims of the operands and the result.
struct Convolution {
  std::vector<std::int64_t> lhs{};     ///< batch, input feature, spatial..
  std::vector<std::int64_t> rhs{};     ///< input feature, output feature, spatial..
  std::vector<std::int64_t> result{};  ///< batch, output feature, spatial..
  std::vector<WindowDim> window{};     ///< of each spatial dim; sizes are those of rhs
  /// Windows read rhs from its end. One flag for all dims, so that every gradient is a convolution.
  bool reversed = false;
  /// Empty, or the dim of lhs, rhs and result that counts convolutions side by side.
  std::vector<std::int64_t> group{};
};
std::vector<std::int64_t> to_attrs(const Convolution& convolution);
/// `attrs` of as many words as a convolution has.
Convolution convolution_of(std::span<const std::int64_t> attrs, const Shape& rhs);
/// Number of spatial dims by the number of attribute words; 0 if a convolution never has so many.
std::size_t spatial_count(std::size_t attr_count);

/// What a reduce_window does, and a select_and_scatter undoes.
struct WindowReduction {
  ReduceKind kind = ReduceKind::add;
  std::vector<WindowDim> dims{};  ///< of each dim of the operand
};
std::vector<std::int64_t> to_attrs(const WindowReduction& reduction);
/// `attrs` of 1 + 6 words a dim.
WindowReduction window_reduction_of(std::span<const std::int64_t> attrs);

}  // namespace weft
