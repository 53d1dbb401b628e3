#pragma once
/// Makes kernels of ops that only select, repeat or reorder elements of their operand: transpose,
/// broadcast_in_dim, slice, reverse, all_slice, reshape and copy.

#include <cstdint>
#include <span>

#include "chips/cpu/loops/kernel.hpp"
#include "spmd/program/strides.hpp"

namespace weft::kernels {

/// A view of an operand's elements. Element (i0, i1, ..) of the view is the operand's element
/// number `offset` + i0 * strides[0] + i1 * strides[1] + .. A stride of 0 repeats elements.
struct StridedView {
  Shape shape;
  Strides strides{};
  std::int64_t offset = 0;
};

/// Makes a kernel that copies the elements of operand 0 in `view` to a dense result.
Kernel copy_view(const StridedView& view, DType dtype);

}  // namespace weft::kernels
