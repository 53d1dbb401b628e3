#pragma once
/// The meetings of windows with operand elements (window_axes.hpp), as loops without conditions.

#include <vector>

#include "spmd/program/window_axes.hpp"

namespace weft::kernels {

/// For one element number k of a window: the windows along a dim whose element k is on an operand
/// element. They are window_step apart.
struct Tap {
  Meeting first;
  std::int64_t count = 0;
};

/// Strides and steps in elements of the buffers.
struct WindowLoops {
  std::vector<Meeting> outer;  ///< meetings in all dims but the innermost
  std::vector<Tap> taps;       ///< in the innermost dim
  std::int64_t window_step = 1;
  std::int64_t operand_step = 1;
};
WindowLoops window_loops(std::span<const WindowAxis> axes);

/// Calls body(first, count) for every run. Meeting j of a run is at j * window_step and j *
/// operand_step after `first`, at the same place in the window. A window's meetings come in
/// row-major order of their places.
template <typename Body>
void for_each_run(const WindowLoops& loops, const Body& body) {
  for (const Meeting& outer : loops.outer) {
    for (const Tap& tap : loops.taps) {
      body(Meeting{outer.window + tap.first.window, outer.operand + tap.first.operand,
                   outer.place + tap.first.place},
           tap.count);
    }
  }
}

}  // namespace weft::kernels
