#pragma once
/// The offsets, in row-major arrays, at which windows meet the elements of an operand.

#include "spmd/program/window.hpp"

namespace weft {

/// One dim along which windows slide; strides are distances in elements between neighbours.
struct WindowAxis {
  WindowDim window{};
  std::int64_t size = 1;   ///< the operand's size
  std::int64_t count = 1;  ///< number of windows
  std::int64_t operand_stride = 1;
  std::int64_t window_stride = 1;
  std::int64_t place_first = 0;  ///< offset in rhs of a window's first element
  std::int64_t place_stride = 0;
};

/// Returns the axes of all dims of a reduce_window from `operand` to `windows`.
std::vector<WindowAxis> window_axes(const WindowReduction& reduction, const Shape& operand,
                                    const Shape& windows);
/// Returns the axes of the spatial dims of a convolution.
std::vector<WindowAxis> window_axes(const Convolution& convolution, const Shape& lhs,
                                    const Shape& rhs, const Shape& result);

/// Offsets of a window, of an operand element in that window, and of the element of rhs that
/// multiplies it.
struct Meeting {
  std::int64_t window = 0;
  std::int64_t operand = 0;
  std::int64_t place = 0;
};
/// Returns all meetings. The meetings of one window are in row-major order of their places in it.
std::vector<Meeting> meetings(std::span<const WindowAxis> axes);

}  // namespace weft
