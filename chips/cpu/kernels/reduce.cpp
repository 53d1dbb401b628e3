/// The kernel of reduce, over any dims. The order in which elements are combined depends only on
/// the shape and the dims. bf16 and f16 are combined in f32, and rounded once or not at all.

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/run_sum.hpp"
#include "chips/cpu/loops/strided.hpp"
#include "chips/cpu/loops/vectorize.hpp"

namespace weft::kernels {
namespace {

/// A loop over one dim, or over several adjacent dims that are all kept or all reduced.
struct DimLoop {
  std::int64_t size = 1;
  std::int64_t stride = 0;  ///< stride in the operand
};

struct Loops {
  std::vector<DimLoop> kept;     ///< from outer to inner; the result is dense over these loops
  std::vector<DimLoop> reduced;  ///< from outer to inner
};

Loops loops_of(const Shape& shape, std::span<const std::int64_t> dims) {
  const Strides strides = dense_strides(shape);
  Loops loops;
  const std::vector<DimLoop>* last = nullptr;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1) continue;
    const bool is_reduced = std::ranges::find(dims, dim) != dims.end();
    std::vector<DimLoop>& list = is_reduced ? loops.reduced : loops.kept;
    const DimLoop loop{shape[dim], strides[static_cast<std::size_t>(dim)]};
    if (last == &list) {
      list.back() = {list.back().size * loop.size, loop.stride};
    } else {
      list.push_back(loop);
    }
    last = &list;
  }
  return loops;
}

/// Calls body with the offset in the operand for every iteration of the loops, in row-major order.
template <typename Body>
void for_each_turn(std::span<const DimLoop> loops, std::int64_t offset, Body body) {
  if (loops.empty()) return body(offset);
  if (std::ranges::any_of(loops, [](const DimLoop& loop) { return loop.size == 0; })) return;
  // `turns` counts the iterations of all loops. A recursion would be simpler, but the compiler
  // wouldn't inline it into vectorized().
  Strides turns{};
  for (bool goes_on = true; goes_on;) {
    body(offset);
    goes_on = false;
    for (std::size_t i = loops.size(); i-- > 0 && !goes_on;) {
      offset += loops[i].stride;
      goes_on = ++turns[i] < loops[i].size;
      if (goes_on) continue;
      offset -= turns[i] * loops[i].stride;
      turns[i] = 0;
    }
  }
}

/// The number of results that rows() accumulates at the same time. It is large, because the
/// processor prefetches along rows, but small enough for the sums to fit in the first-level cache.
constexpr std::int64_t kColumns = 2048;

/// Combines elements of type T into results of type R, which is T or the type in which T is
/// computed.
template <typename T, typename R, typename F>
struct Combine {
  using C = Compute<T>;
  C identity;
  F f;

  /// Combines contiguous elements. This is for operands whose innermost dim is reduced.
  void runs(const Loops& loops, const T* operand, R* result) const {
    const std::span outer(loops.reduced.data(), loops.reduced.size() - 1);
    const std::int64_t size = loops.reduced.back().size;
    for_each_turn(std::span(loops.kept), 0, [&](std::int64_t kept) {
      RunSum<T, F> sum(identity, f);
      for_each_turn(outer, kept, [&](std::int64_t offset) { sum.add(operand + offset, size); });
      *result++ = store<R>(sum.value());
    });
  }

  /// Combines rows one after another, element by element. This is for operands whose innermost dim
  /// is kept.
  void rows(const Loops& loops, const T* operand, R* result) const {
    const std::span outer(loops.kept.data(), loops.kept.size() - 1);
    const std::span turns(loops.reduced.data(), loops.reduced.size() - 1);
    const DimLoop& rows = loops.reduced.back();
    const std::int64_t size = loops.kept.back().size;
    for_each_turn(outer, 0, [&](std::int64_t kept) {
      for (std::int64_t begin = 0; begin < size; begin += kColumns) {
        const std::int64_t count = std::min(kColumns, size - begin);
        std::array<C, kColumns> sums;
        std::fill_n(sums.begin(), count, identity);
        for_each_turn(turns, kept + begin, [&](std::int64_t offset) {
          const T* x = operand + offset;
          std::int64_t row = 0;
          for (; row + kRows <= rows.size; row += kRows, x += kRows * rows.stride) {
            combine_rows<kRows>(x, rows.stride, count, sums.data());
          }
          for (; row < rows.size; ++row, x += rows.stride) {
            combine_rows<1>(x, 0, count, sums.data());
          }
        });
        for (std::int64_t i = 0; i < count; ++i) {
          result[begin + i] = store<R>(sums[static_cast<std::size_t>(i)]);
        }
      }
      result += size;
    });
  }

 private:
  /// The number of rows that are combined per load and store of a result. It is 1 for max and min,
  /// because g++ 12 doesn't vectorize a loop with several comparisons.
  static constexpr int kRows = std::is_same_v<F, Add> ? 4 : 1;

  template <int kRowsAtOnce>
  void combine_rows(const T* x, std::int64_t stride, std::int64_t columns, C* sums) const {
    for (std::int64_t i = 0; i < columns; ++i) {
      C sum = sums[i];
      for (int row = 0; row < kRowsAtOnce; ++row) sum = f(sum, load(x[row * stride + i]));
      sums[i] = sum;
    }
  }
};

template <typename T, typename R = T, typename F>
Kernel kernel(const TensorType& operand, std::span<const std::int64_t> dims, Compute<T> identity,
              F f) {
  Loops loops = loops_of(operand.shape, dims);
  // The innermost loop must be a reduced loop for runs(), and a kept loop for rows().
  const bool along_runs =
      loops.kept.empty() || (!loops.reduced.empty() && loops.reduced.back().stride == 1);
  if (loops.reduced.empty()) loops.reduced.push_back({1, 1});
  const Combine<T, R, F> combine{identity, f};
  if (along_runs) {
    return vectorized<Vectors::avx2>([=](const KernelArgs& args) {
      combine.runs(loops, as<T>(args.operands[0]), as<R>(args.result));
    });
  }
  return vectorized([=](const KernelArgs& args) {
    combine.rows(loops, as<T>(args.operands[0]), as<R>(args.result));
  });
}

Kernel reduce(const Program& program, OpId op) {
  const TensorType& operand = program.type(program.op_operands(op)[0]);
  const auto attrs = program.op_attrs(op);
  const auto dims = attrs.subspan(1);
  return visit_dtype(operand.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    using C = Compute<T>;
    switch (static_cast<ReduceKind>(attrs[0])) {
      case ReduceKind::add:
        if constexpr (std::is_same_v<T, Pred>) {
          return {};
        } else {
          const bool is_wide = program.type(program.result(op)).dtype != operand.dtype;
          return is_wide ? kernel<T, C>(operand, dims, C{0}, Add{})
                         : kernel<T>(operand, dims, C{0}, Add{});
        }
      case ReduceKind::max: return kernel<T>(operand, dims, lowest<C>(), Maximum{});
      case ReduceKind::min: return kernel<T>(operand, dims, highest<C>(), Minimum{});
    }
    return {};
  });
}

}  // namespace

constexpr Prepare prepares::reduce = prepare_by<kernels::reduce>;

}  // namespace weft::kernels
