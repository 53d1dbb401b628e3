#pragma once
/// Finds the elements of an operand that windows cover, given as offsets in row-major arrays.

#include "spmd/program/window.hpp"

namespace weft {

/// One dim along which windows slide. Strides are distances in elements between neighbors.
struct WindowAxis {
  WindowDim window{};
  std::int64_t size = 1;   ///< the operand's size
  std::int64_t count = 1;  ///< number of windows
  std::int64_t operand_stride = 1;
  std::int64_t window_stride = 1;
  std::int64_t place_first = 0;  ///< offset in rhs for a window's first element
  std::int64_t place_stride = 0;
};

/// Returns an axis for each dim of a reduce_window. `operand` is the operand's shape, and `windows`
/// the result's.
std::vector<WindowAxis> window_axes(const WindowReduction& reduction, const Shape& operand,
                                    const Shape& windows);
/// Returns an axis for each spatial dim of a convolution.
std::vector<WindowAxis> window_axes(const Convolution& convolution, const Shape& lhs,
                                    const Shape& rhs, const Shape& result);

/// A pair of a window and an operand element that the window covers: the offsets of both, and the
/// offset of the element of rhs by which the operand element is multiplied.
struct Meeting {
  std::int64_t window = 0;
  std::int64_t operand = 0;
  std::int64_t place = 0;
};
/// Returns all pairs. The pairs of one window are in row-major order of their elements' positions
/// in the window.
std::vector<Meeting> meetings(std::span<const WindowAxis> axes);

}  // namespace weft
