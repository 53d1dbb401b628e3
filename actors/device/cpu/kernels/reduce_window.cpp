/// reduce_window and select_and_scatter: plain loops; bf16 and f16 are summed in f32.

#include <algorithm>
#include <limits>

#include "actors/device/cpu/kernels/through_f32.hpp"
#include "actors/device/cpu/loops/arithmetic.hpp"
#include "actors/device/cpu/loops/element.hpp"
#include "actors/device/cpu/loops/prepares.hpp"
#include "actors/device/cpu/loops/vectorize.hpp"
#include "actors/device/cpu/loops/window_loops.hpp"

namespace weft::kernels {
namespace {

/// Leading dims whose windows are single elements are merged into one loop over planes. Each plane
/// has the windows of the other dims.
struct Planes {
  std::int64_t count = 1;
  std::int64_t operand_size = 1;
  std::int64_t window_size = 1;
  WindowLoops loops;
  bool are_apart = true;  ///< no element lies in two windows
};

Planes planes_of(const WindowReduction& reduction, const Shape& operand, const Shape& windows) {
  const std::vector<WindowAxis> axes = window_axes(reduction, operand, windows);
  Planes planes;
  std::size_t leading = 0;
  for (; leading < axes.size() && axes[leading].window == WindowDim{}; ++leading) {
    planes.count *= axes[leading].count;
  }
  const std::span rest = std::span(axes).subspan(leading);
  for (const WindowAxis& axis : rest) {
    planes.operand_size *= axis.size;
    planes.window_size *= axis.count;
    const std::int64_t span = dilated(axis.window.size, axis.window.dilation);
    planes.are_apart = planes.are_apart && axis.window.stride >= span;
  }
  planes.loops = window_loops(rest);
  return planes;
}

/// Calls body(window step, operand step), with constants for steps that can be vectorized.
template <typename Body>
void with_steps(const WindowLoops& loops, const Body& body) {
  using One = std::integral_constant<std::int64_t, 1>;
  using Two = std::integral_constant<std::int64_t, 2>;
  if (loops.window_step == 1 && loops.operand_step == 1) return body(One(), One());
  if (loops.window_step == 1 && loops.operand_step == 2) return body(One(), Two());
  body(loops.window_step, loops.operand_step);
}

template <typename T, typename F>
Kernel reduction(const Planes& planes, Compute<T> identity, F f) {
  return vectorized<Vectors::avx2>([=](const KernelArgs& args) {
    const T* x = as<T>(args.operands[0]);
    T* y = as<T>(args.result);
    with_steps(planes.loops, [&](auto window_step, auto operand_step) {
      for (std::int64_t plane = 0; plane < planes.count; ++plane) {
        std::fill_n(y, planes.window_size, store<T>(identity));
        for_each_run(planes.loops, [&](const Meeting& first, std::int64_t count) {
          const T* from = x + first.operand;
          T* to = y + first.window;
          for (std::int64_t j = 0; j < count; ++j) {
            T& total = to[j * window_step];
            total = store<T>(f(load(total), load(from[j * operand_step])));
          }
        });
        x += planes.operand_size;
        y += planes.window_size;
      }
    });
  });
}

/// Adds an element of g to that element of y whose place is its window's.
template <typename T, typename Place>
void scatter(const Planes& planes, const Place* places, const T* g, T* y) {
  if (planes.are_apart && planes.loops.window_step == 1 && planes.loops.operand_step == 1) {
    for_each_run(planes.loops, [&](const Meeting& first, std::int64_t count) {
      const Place* place = places + first.window;
      const T* from = g + first.window;
      T* to = y + first.operand;
      const auto at = static_cast<Place>(first.operand);
      for (std::int64_t j = 0; j < count; ++j) {
        const bool is_place = place[j] == at + static_cast<Place>(j);
        to[j] = Add{}(to[j], is_place ? from[j] : T{0});
      }
    });
    return;
  }
  for (std::int64_t window = 0; window < planes.window_size; ++window) {
    if (places[window] < 0) continue;
    T& total = y[places[window]];
    total = Add{}(total, g[window]);
  }
}

/// The scratch memory holds the place of each window's extremum in a plane, and then the extrema. A
/// Place is at least as wide as an element.
template <typename T, typename Place, typename Beats>
Kernel selection(const Planes& planes, T identity, Beats beats) {
  const auto windows = static_cast<std::size_t>(planes.window_size);
  Kernel kernel = vectorized<Vectors::avx2>([=](const KernelArgs& args) {
    const T* x = as<T>(args.operands[0]);
    const T* g = as<T>(args.operands[1]);
    T* y = as<T>(args.result);
    Place* places = as<Place>(args.scratch);
    T* bests = as<T>(args.scratch + windows * sizeof(Place));
    const auto select = [&](auto window_step, auto operand_step) {
      for_each_run(planes.loops, [&](const Meeting& first, std::int64_t count) {
        const T* from = x + first.operand;
        T* best = bests + first.window;
        Place* place = places + first.window;
        for (std::int64_t j = 0; j < count; ++j) {
          const T element = from[j * operand_step];
          const T b = best[j * window_step];
          const Place p = place[j * window_step];
          // A NaN wins and stays. Without branches, the loop is vectorized.
          const bool wins = (p < 0) | ((beats(element, b) | (element != element)) & (b == b));
          place[j * window_step] = wins ? static_cast<Place>(first.operand + j * operand_step) : p;
          best[j * window_step] = wins ? element : b;
        }
      });
    };
    for (std::int64_t plane = 0; plane < planes.count; ++plane) {
      std::fill_n(places, windows, Place{-1});
      std::fill_n(bests, windows, identity);
      with_steps(planes.loops, select);
      std::fill_n(y, planes.operand_size, T{0});
      scatter(planes, places, g, y);
      x += planes.operand_size;
      y += planes.operand_size;
      g += planes.window_size;
    }
  });
  kernel.scratch_bytes = windows * (sizeof(T) + sizeof(Place));
  return kernel;
}

/// Takes the narrowest Place that can number the elements of a plane.
template <typename T, typename Beats>
Kernel selection(const Planes& planes, T identity, Beats beats) {
  if (sizeof(T) == 4 && planes.operand_size <= std::numeric_limits<std::int32_t>::max()) {
    return selection<T, std::int32_t>(planes, identity, beats);
  }
  return selection<T, std::int64_t>(planes, identity, beats);
}

/// The dtype that the op is computed in.
DType computed(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

Kernel reduce_window(const Program& program, OpId op) {
  const TensorType& x = program.type(program.op_operands(op)[0]);
  const WindowReduction attrs = window_reduction_of(program.op_attrs(op));
  const Planes planes = planes_of(attrs, x.shape, program.shape(program.result(op)));
  const Kernel kernel =
      visit_dtype(computed(x.dtype), [&]<typename T>(std::type_identity<T>) -> Kernel {
        using C = Compute<T>;
        switch (attrs.kind) {
          case ReduceKind::add:
            if constexpr (std::is_same_v<T, Pred>) {
              return {};
            } else {
              return reduction<T>(planes, C{0}, Add{});
            }
          case ReduceKind::max: return reduction<T>(planes, lowest<C>(), Maximum{});
          case ReduceKind::min: return reduction<T>(planes, highest<C>(), Minimum{});
        }
        return {};
      });
  return is_half(x.dtype) ? through_f32(program, op, kernel) : kernel;
}

Kernel select_and_scatter(const Program& program, OpId op) {
  const auto operands = program.op_operands(op);
  const TensorType& x = program.type(operands[0]);
  const WindowReduction attrs = window_reduction_of(program.op_attrs(op));
  const Planes planes = planes_of(attrs, x.shape, program.shape(operands[1]));
  const Kernel kernel =
      visit_dtype(computed(x.dtype), [&]<typename T>(std::type_identity<T>) -> Kernel {
        if constexpr (std::is_same_v<T, Compute<T>>) {
          const auto greater = [](T a, T b) { return a > b; };
          const auto less = [](T a, T b) { return a < b; };
          return attrs.kind == ReduceKind::max ? selection<T>(planes, lowest<T>(), greater)
                                               : selection<T>(planes, highest<T>(), less);
        } else {
          return {};
        }
      });
  return is_half(x.dtype) ? through_f32(program, op, kernel) : kernel;
}

}  // namespace

constexpr Prepare prepares::reduce_window = prepare_by<kernels::reduce_window>;
constexpr Prepare prepares::select_and_scatter = prepare_by<kernels::select_and_scatter>;

}  // namespace weft::kernels
