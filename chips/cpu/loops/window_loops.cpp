#include "chips/cpu/loops/window_loops.hpp"

#include <algorithm>
#include <numeric>

namespace weft::kernels {

WindowLoops window_loops(std::span<const WindowAxis> axes) {
  if (axes.empty()) return {{{}}, {{{}, 1}}};
  const WindowAxis& axis = axes.back();
  const WindowDim& window = axis.window;
  const std::int64_t common = std::gcd(window.stride, window.base_dilation);
  const std::int64_t o_step = window.base_dilation / common;
  const std::int64_t i_step = window.stride / common;
  WindowLoops loops{.outer = meetings(axes.first(axes.size() - 1)),
                    .taps = {},
                    .window_step = o_step * axis.window_stride,
                    .operand_step = i_step * axis.operand_stride};
  for (std::int64_t k = 0; k < window.size; ++k) {
    const std::int64_t before = std::max<std::int64_t>(window.low - k * window.dilation, 0);
    std::int64_t o = (before + window.stride - 1) / window.stride;
    // Searches o_step adjacent windows for the one whose element k covers an operand element, if
    // any.
    const std::int64_t end = std::min(axis.count, o + o_step);
    std::int64_t i = -1;
    while (o < end && (i = element_under(window, o, k, axis.size)) < 0) ++o;
    if (i < 0) continue;
    const std::int64_t count =
        std::min((axis.count - 1 - o) / o_step, (axis.size - 1 - i) / i_step) + 1;
    loops.taps.push_back({{o * axis.window_stride, i * axis.operand_stride,
                           axis.place_first + k * axis.place_stride},
                          count});
  }
  return loops;
}

}  // namespace weft::kernels
