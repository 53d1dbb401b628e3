#pragma once
/// The meetings of windows and elements as loops without conditions.

#include <vector>

#include "spmd/program/window_axes.hpp"

namespace weft::kernels {

/// One element of all windows along a dim: of every `window_step`-th one, as far as the operand
/// reaches.
struct Tap {
  Meeting first;
  std::int64_t count = 0;
};

/// Strides and steps in elements of the buffers.
struct WindowLoops {
  std::vector<Meeting> outer;  ///< of all dims but the innermost
  std::vector<Tap> taps;       ///< of the innermost dim
  std::int64_t window_step = 1;
  std::int64_t operand_step = 1;
};
WindowLoops window_loops(std::span<const WindowAxis> axes);

/// Calls body(first, count) for every run: its meeting number j is j window_steps and operand_steps
/// behind `first`. Those of one window come in row-major order of the places in it.
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
