#include "spmd/program/window_axes.hpp"

#include "spmd/program/strides.hpp"

namespace weft {

std::vector<WindowAxis> window_axes(const WindowReduction& reduction, const Shape& operand,
                                    const Shape& windows) {
  const std::vector<std::int64_t> operand_strides = row_major_strides(operand);
  const std::vector<std::int64_t> window_strides = row_major_strides(windows);
  std::vector<WindowAxis> axes;
  for (std::size_t dim = 0; dim < reduction.dims.size(); ++dim) {
    axes.push_back({.window = reduction.dims[dim],
                    .size = operand[static_cast<int>(dim)],
                    .count = windows[static_cast<int>(dim)],
                    .operand_stride = operand_strides[dim],
                    .window_stride = window_strides[dim]});
  }
  return axes;
}

std::vector<WindowAxis> window_axes(const Convolution& convolution, const Shape& lhs,
                                    const Shape& rhs, const Shape& result) {
  const auto stride = [](const Shape& shape, std::int64_t dim) {
    return row_major_strides(shape)[static_cast<std::size_t>(dim)];
  };
  std::vector<WindowAxis> axes;
  for (std::size_t i = 0; i < convolution.window.size(); ++i) {
    const std::int64_t lhs_dim = convolution.lhs[2 + i];
    const std::int64_t result_dim = convolution.result[2 + i];
    WindowAxis axis{.window = convolution.window[i],
                    .size = lhs[static_cast<int>(lhs_dim)],
                    .count = result[static_cast<int>(result_dim)],
                    .operand_stride = stride(lhs, lhs_dim),
                    .window_stride = stride(result, result_dim),
                    .place_stride = stride(rhs, convolution.rhs[2 + i])};
    if (convolution.reversed) {
      axis.place_first = (axis.window.size - 1) * axis.place_stride;
      axis.place_stride = -axis.place_stride;
    }
    axes.push_back(axis);
  }
  return axes;
}

std::vector<Meeting> meetings(std::span<const WindowAxis> axes) {
  std::vector<Meeting> all{{}};
  for (const WindowAxis& axis : axes) {
    std::vector<Meeting> next;
    for (const Meeting& outer : all) {
      for (std::int64_t o = 0; o < axis.count; ++o) {
        for (std::int64_t k = 0; k < axis.window.size; ++k) {
          const std::int64_t i = element_under(axis.window, o, k, axis.size);
          if (i < 0) continue;
          next.push_back({outer.window + o * axis.window_stride,
                          outer.operand + i * axis.operand_stride,
                          outer.place + axis.place_first + k * axis.place_stride});
        }
      }
    }
    all = std::move(next);
  }
  return all;
}

}  // namespace weft
