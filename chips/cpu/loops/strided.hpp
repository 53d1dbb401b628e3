#pragma once
/// Ops that only select, repeat or reorder elements of their operand, by one mechanism: transpose,
/// broadcast_in_dim, slice, reverse, all_slice, reshape, copy.

#include <array>
#include <cstdint>
#include <span>

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

using Strides = std::array<std::int64_t, kDimCountMax>;

/// Row-major strides, in elements.
Strides dense_strides(const Shape& shape);

/// Element (i0, i1, ..) lies at `offset` + i0 * strides[0] + i1 * strides[1] + ..; stride 0
/// repeats.
struct StridedView {
  Shape shape;
  Strides strides{};
  std::int64_t offset = 0;
};

/// Copies the view of operand 0 into a dense result.
Kernel copy_view(const StridedView& view, DType dtype);

}  // namespace weft::kernels
