/// Kernels of reduce_window and select_and_scatter. The inner loops are over runs of elements that
/// are all in different windows, or over rows whose elements are all in the same window. bf16 and
/// f16 are summed in f32.

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "chips/cpu/kernels/through_f32.hpp"
#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "chips/cpu/loops/window_loops.hpp"

namespace weft::kernels {
namespace {

/// The loops over windows. Leading dims with windows of size 1 are merged into one loop over
/// planes. The windows over the other dims are the same in all planes.
struct Planes {
  std::int64_t count = 1;
  std::int64_t operand_size = 1;
  std::int64_t window_size = 1;
  std::int64_t row = 1;  ///< number of windows along the innermost dim
  WindowLoops loops;
  bool are_apart = true;  ///< true if no element is in two windows
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
  if (!rest.empty()) planes.row = rest.back().count;
  planes.loops = window_loops(rest);
  return planes;
}

/// The windows of a plane if the innermost dim isn't cut into windows, such as features that are
/// the last dim. Each window then covers some complete rows of the operand, in row-major order of
/// their positions in the window.
struct RowWindows {
  struct Window {
    std::int64_t result = 0;  ///< offset of the window's row in the result
    std::size_t first = 0;    ///< index of the window's first row in `operands`
    std::size_t count = 0;
  };
  std::int64_t row = 0;  ///< number of elements of a row
  std::vector<Window> windows;
  std::vector<std::int64_t> operands;
};

/// Returns the windows as rows; nothing if the innermost dim is cut, or `dtype` isn't floating.
std::optional<RowWindows> row_windows(const Planes& planes, DType dtype) {
  const WindowLoops& loops = planes.loops;
  if (!is_floating(dtype)) return {};
  if (loops.taps.size() != 1 || loops.window_step != 1 || loops.operand_step != 1) return {};
  const Tap& tap = loops.taps[0];
  if (tap.first.window != 0 || tap.count == 0 || planes.row != tap.count) return {};
  RowWindows rows{.row = tap.count, .windows = {}, .operands = {}};
  std::vector<Meeting> meetings = loops.outer;
  std::ranges::stable_sort(meetings, {}, &Meeting::window);
  auto meeting = meetings.begin();
  for (std::int64_t result = 0; result < planes.window_size; result += rows.row) {
    const std::size_t first = rows.operands.size();
    for (; meeting != meetings.end() && meeting->window == result; ++meeting) {
      rows.operands.push_back(meeting->operand + tap.first.operand);
    }
    rows.windows.push_back({result, first, rows.operands.size() - first});
  }
  return rows;
}

template <typename T, std::size_t count>
struct VectorOf {
  using Type [[gnu::vector_size(count * sizeof(T))]] = T;
};

/// A vector of adjacent elements of a row. For the end of a row, smaller pieces are used.
template <typename T, std::size_t kBytes>
struct Piece {
  using C = Compute<T>;
  using Number = std::conditional_t<sizeof(C) == 8, std::int64_t, std::int32_t>;
  static constexpr std::size_t kCount = kBytes / sizeof(C);
  using Vector = VectorOf<C, kCount>::Type;
  using Numbers = VectorOf<Number, kCount>::Type;
  using Bits = VectorOf<std::uint32_t, kCount>::Type;
  using Halves = VectorOf<std::uint16_t, kCount>::Type;

  static Vector load(const T* from) {
    Vector values{};
    if constexpr (std::is_same_v<T, C>) {
      std::memcpy(&values, from, kBytes);
    } else if constexpr (std::is_same_v<T, Bf16>) {
      Halves halves;
      std::memcpy(&halves, from, sizeof(halves));
      values = reinterpret_cast<Vector>(__builtin_convertvector(halves, Bits) << 16);
    } else {
      for (std::size_t i = 0; i < kCount; ++i) values[i] = kernels::load(from[i]);
    }
    return values;
  }

  static void store(Vector values, T* to) {
    if constexpr (std::is_same_v<T, C>) {
      std::memcpy(to, &values, kBytes);
    } else if constexpr (std::is_same_v<T, Bf16>) {  // rounds like Bf16
      const Bits bits = reinterpret_cast<Bits>(values);
      const Bits rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
      const Bits nan = (bits >> 16) | 0x40U;
      const Halves halves = __builtin_convertvector(values != values ? nan : rounded, Halves);
      std::memcpy(to, &halves, sizeof(halves));
    } else {
      for (std::size_t i = 0; i < kCount; ++i) to[i] = kernels::store<T>(values[i]);
    }
  }
};

/// Calls body(size in bytes, window, first element) for each piece of each row of a plane's result.
template <typename C, std::size_t kBytes, typename Body>
void for_each_piece(const RowWindows& rows, const Body& body) {
  constexpr auto kCount = static_cast<std::int64_t>(kBytes / sizeof(C));
  for (const RowWindows::Window& window : rows.windows) {
    std::int64_t begin = 0;
    for (; begin + kCount <= rows.row; begin += kCount) {
      body(std::integral_constant<std::size_t, kBytes>(), window, begin);
    }
    for (; begin < rows.row; ++begin) {
      body(std::integral_constant<std::size_t, sizeof(C)>(), window, begin);
    }
  }
}

/// The body that vectorized_by_size() compiles: reduces the windows of all planes, row by row.
template <typename T, typename F>
struct ReductionOfRows {
  using C = Compute<T>;
  Planes planes;
  RowWindows rows;
  C identity;
  F f;

  template <std::size_t kBytes>
  void run(const KernelArgs& args) const {
    const T* x = as<T>(args.operands[0]);
    T* y = as<T>(args.result);
    for (std::int64_t plane = 0; plane < planes.count; ++plane) {
      for_each_piece<C, kBytes>(rows, [&](auto bytes, const auto& window, std::int64_t begin) {
        using Lanes = Piece<T, decltype(bytes)::value>;
        const std::int64_t* operands = rows.operands.data() + window.first;
        typename Lanes::Vector total{};
        for (std::size_t j = 0; j < Lanes::kCount; ++j) total[j] = identity;
        for (std::size_t i = 0; i < window.count; ++i) {
          total = f(total, Lanes::load(x + operands[i] + begin));
        }
        Lanes::store(total, y + window.result + begin);
      });
      x += planes.operand_size;
      y += planes.window_size;
    }
  }
};

/// For each window and column, adds the element of g to the row with the extremum, and 0 to others.
/// If the windows cover all elements and don't overlap, stores these terms instead of adding them.
template <typename T, typename Beats>
struct SelectionOfRows {
  using C = Compute<T>;
  Planes planes;
  RowWindows rows;
  Beats beats;

  template <std::size_t kBytes>
  void run(const KernelArgs& args) const {
    const T* x = as<T>(args.operands[0]);
    const T* g = as<T>(args.operands[1]);
    T* y = as<T>(args.result);
    const std::int64_t met = static_cast<std::int64_t>(rows.operands.size()) * rows.row;
    const bool is_whole = planes.are_apart && met == planes.operand_size;
    for (std::int64_t plane = 0; plane < planes.count; ++plane) {
      if (!is_whole) std::fill_n(y, planes.operand_size, store<T>(C{0}));
      for_each_piece<C, kBytes>(rows, [&](auto bytes, const auto& window, std::int64_t begin) {
        using Lanes = Piece<T, decltype(bytes)::value>;
        if (window.count == 0) return;
        const std::int64_t* operands = rows.operands.data() + window.first;
        typename Lanes::Vector best = Lanes::load(x + operands[0] + begin);
        typename Lanes::Numbers number{};  // a counter, because g++ 12 broadcasts an integer lane
                                           // by lane
        typename Lanes::Numbers chosen{};
        for (std::size_t i = 1; i < window.count; ++i) {
          number += 1;
          const typename Lanes::Vector element = Lanes::load(x + operands[i] + begin);
          // The first NaN is chosen and stays chosen.
          const auto wins = (beats(element, best) | (element != element)) & (best == best);
          chosen = wins ? number : chosen;
          best = wins ? element : best;
        }
        const typename Lanes::Vector zero{};
        const typename Lanes::Vector addend = Add{}(zero, Lanes::load(g + window.result + begin));
        for (std::size_t i = 0; i < window.count; ++i, chosen -= 1) {  // 0 at the chosen row
          T* const to = y + operands[i] + begin;
          typename Lanes::Vector sum = chosen == 0 ? addend : zero;
          if (!is_whole) sum = Add{}(Lanes::load(to), sum);
          Lanes::store(sum, to);
        }
      });
      x += planes.operand_size;
      y += planes.operand_size;
      g += planes.window_size;
    }
  }
};

/// Calls body with the steps in windows and in the operand, which are compile-time constants if the
/// loop can be vectorized.
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

/// Adds each element of g to the element of y that the element's window has chosen.
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

/// Makes the kernel. Its scratch memory has the place of each window's extremum in the plane,
/// followed by all extrema. A Place has at least as many bytes as an element.
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
          // The first NaN is chosen and stays chosen. The loop is vectorized, because `|` and `&`
          // don't branch.
          const bool wins = (p < 0) | ((beats(element, b) | is_nan(element)) & !is_nan(b));
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

/// Makes the kernel with the narrowest Place that can number the elements of a plane.
template <typename T, typename Beats>
Kernel selection(const Planes& planes, T identity, Beats beats) {
  if (sizeof(T) == 4 && planes.operand_size <= std::numeric_limits<std::int32_t>::max()) {
    return selection<T, std::int32_t>(planes, identity, beats);
  }
  return selection<T, std::int64_t>(planes, identity, beats);
}

/// Returns the dtype in which the op is computed.
DType computed(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

Kernel reduce_window(const Program& program, OpId op) {
  const TensorType& x = program.type(program.op_operands(op)[0]);
  const WindowReduction attrs = window_reduction_of(program.op_attrs(op));
  const Planes planes = planes_of(attrs, x.shape, program.shape(program.result(op)));
  const std::optional<RowWindows> rows = row_windows(planes, x.dtype);
  const auto make = [&]<typename T>(std::type_identity<T>) -> Kernel {
    using C = Compute<T>;
    const auto reduced = [&](C identity, auto f) {
      if constexpr (kIsFloating<T>) {
        using Rows = ReductionOfRows<T, decltype(f)>;
        if (rows) return vectorized_by_size<Vectors::avx2>(Rows{planes, *rows, identity, f});
      }
      return reduction<T>(planes, identity, f);
    };
    switch (attrs.kind) {
      case ReduceKind::add:
        if constexpr (std::is_same_v<T, Pred>) {
          return {};
        } else {
          return reduced(C{0}, Add{});
        }
      case ReduceKind::max: return reduced(lowest<C>(), Maximum{});
      case ReduceKind::min: return reduced(highest<C>(), Minimum{});
    }
    return {};
  };
  // Half-precision rows need no conversion, because ReductionOfRows itself sums them in f32.
  if (rows || !is_half(x.dtype)) return visit_dtype(x.dtype, make);
  return through_f32(program, op, visit_dtype(computed(x.dtype), make));
}

Kernel select_and_scatter(const Program& program, OpId op) {
  const auto operands = program.op_operands(op);
  const TensorType& x = program.type(operands[0]);
  const WindowReduction attrs = window_reduction_of(program.op_attrs(op));
  const Planes planes = planes_of(attrs, x.shape, program.shape(operands[1]));
  const std::optional<RowWindows> rows = row_windows(planes, x.dtype);
  const auto make = [&]<typename T>(std::type_identity<T>) -> Kernel {
    using C = Compute<T>;
    const auto selected = [&](C identity, auto beats) -> Kernel {
      if constexpr (kIsFloating<T>) {
        using Rows = SelectionOfRows<T, decltype(beats)>;
        if (rows) return vectorized_by_size<Vectors::avx2>(Rows{planes, *rows, beats});
      }
      if constexpr (std::is_same_v<T, C>) return selection<T>(planes, identity, beats);
      return {};
    };
    const auto greater = [](auto a, auto b) { return a > b; };
    const auto less = [](auto a, auto b) { return a < b; };
    return attrs.kind == ReduceKind::max ? selected(lowest<C>(), greater)
                                         : selected(highest<C>(), less);
  };
  // Half precision needs f32 only if several elements are summed, so that each sum is rounded once.
  if ((rows && planes.are_apart) || !is_half(x.dtype)) return visit_dtype(x.dtype, make);
  return through_f32(program, op, visit_dtype(computed(x.dtype), make));
}

}  // namespace

constexpr Prepare prepares::reduce_window = prepare_by<kernels::reduce_window>;
constexpr Prepare prepares::select_and_scatter = prepare_by<kernels::select_and_scatter>;

}  // namespace weft::kernels
