#pragma once
/// Loops over all pairs of a window and an operand element that it covers (window_axes.hpp).

#include <vector>

#include "spmd/program/window_axes.hpp"

namespace weft::kernels {

/// The windows along a dim in which element number k covers an operand element. `first` is the
/// first of these windows, `count` is their number, and they are window_step apart.
struct Tap {
  Meeting first;
  std::int64_t count = 0;
};

/// All loops over windows. Steps are numbers of elements in the buffers.
struct WindowLoops {
  std::vector<Meeting> outer;  ///< the pairs along all dims except the innermost
  std::vector<Tap> taps;       ///< the pairs along the innermost dim, one Tap per k
  std::int64_t window_step = 1;
  std::int64_t operand_step = 1;
};
WindowLoops window_loops(std::span<const WindowAxis> axes);

/// Calls body(first, count) for every run of pairs. Pair j of a run is j * window_step windows and
/// j * operand_step operand elements after `first`. The elements of all pairs of a run have the
/// same position in their windows. The pairs of one window come in row-major order of these
/// positions.
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
