#pragma once
/// Where windows meet the elements of an operand, as offsets into row-major arrays.

#include "spmd/program/window.hpp"

namespace weft {

/// One dim along which windows slide; strides are distances in elements between neighbours.
struct WindowAxis {
  WindowDim window{};
  std::int64_t size = 1;   ///< of the operand
  std::int64_t count = 1;  ///< of windows
  std::int64_t operand_stride = 1;
  std::int64_t window_stride = 1;
  std::int64_t place_first = 0;  ///< of rhs: where a window's first element is read, and the next
  std::int64_t place_stride = 0;
};

/// Of all dims of a reduce_window from `operand` to `windows`.
std::vector<WindowAxis> window_axes(const WindowReduction& reduction, const Shape& operand,
                                    const Shape& windows);
/// Of the spatial dims of a convolution.
std::vector<WindowAxis> window_axes(const Convolution& convolution, const Shape& lhs,
                                    const Shape& rhs, const Shape& result);

/// Offsets of a window, of an element of the operand in it, and of that element's place in rhs.
struct Meeting {
  std::int64_t window = 0;
  std::int64_t operand = 0;
  std::int64_t place = 0;
};
/// All meetings. Those of one window come in row-major order of the places in it.
std::vector<Meeting> meetings(std::span<const WindowAxis> axes);

}  // namespace weft
