/// Kernels of ops along the last dim whose results depend on the positions of elements.

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>
#include <span>
#include <type_traits>

#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/vectorize.hpp"

namespace weft::kernels {
namespace {

struct RowsOf {
  std::int64_t count = 1;
  std::int64_t size;  ///< size of the last dim

  explicit RowsOf(const Shape& shape) : size(shape[shape.size() - 1]) {
    for (int dim = 0; dim + 1 < shape.size(); ++dim) count *= shape[dim];
  }
};

const TensorType& operand_type(const Program& program, OpId op, std::size_t i) {
  return program.type(program.op_operands(op)[i]);
}

/// Returns a number by which elements are sorted in ascending order. For floats, NaN comes last,
/// and -0 is equal to 0.
template <typename T>
auto rank_of(T element) {
  const Compute<T> value = load(element);
  using C = Compute<T>;
  using Rank = std::conditional_t<sizeof(C) == 8, std::uint64_t, std::uint32_t>;
  constexpr Rank kSign = Rank{1} << (8 * sizeof(Rank) - 1);
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(value)) return ~Rank{0};
    const auto bits = std::bit_cast<Rank>(value == 0 ? C{0} : value);
    return static_cast<Rank>((bits & kSign) != 0 ? ~bits : bits | kSign);
  } else if constexpr (std::is_signed_v<C>) {
    return static_cast<Rank>(static_cast<Rank>(value) ^ kSign);
  } else {
    return static_cast<Rank>(value);
  }
}

/// The rank and the index of an element of a row. Elements of equal rank are ordered by index, as
/// in a stable sort.
template <typename T>
struct Ranked {
  decltype(rank_of(T{})) rank;
  std::int32_t place;

  friend auto operator<=>(const Ranked&, const Ranked&) = default;
};

template <typename T>
void rank_row(const T* x, std::int64_t size, bool descending, Ranked<T>* ranked) {
  for (std::int64_t i = 0; i < size; ++i) {
    const auto rank = rank_of(x[i]);
    ranked[i] = {descending ? static_cast<decltype(rank)>(~rank) : rank,
                 static_cast<std::int32_t>(i)};
  }
}

/// Sorts `ranked` only as far as needed: the range from the least to the greatest index in `places`
/// is then as in a sorted row.
template <typename T>
void sort_between(Ranked<T>* ranked, std::int64_t size, std::span<const std::int32_t> places) {
  std::int64_t first = size;
  std::int64_t last = -1;
  for (const std::int32_t place : places) {
    if (place < 0 || place >= size) continue;
    first = std::min<std::int64_t>(first, place);
    last = std::max<std::int64_t>(last, place);
  }
  if (first > last) return;
  if (first > 0) std::nth_element(ranked, ranked + first, ranked + size);
  if (last + 1 < size) std::nth_element(ranked + first, ranked + last, ranked + size);
  std::sort(ranked + first, ranked + last + 1);
}

template <typename T>
Kernel argsort(const RowsOf& rows, bool descending) {
  Kernel kernel{[rows, descending](const KernelArgs& args) {
    const T* x = as<T>(args.operands[0]);
    auto* order = as<std::int32_t>(args.result);
    auto* ranked = reinterpret_cast<Ranked<T>*>(args.scratch);
    for (std::int64_t r = 0; r < rows.count; ++r, x += rows.size, order += rows.size) {
      rank_row(x, rows.size, descending, ranked);
      std::sort(ranked, ranked + rows.size);
      for (std::int64_t i = 0; i < rows.size; ++i) order[i] = ranked[i].place;
    }
  }};
  kernel.scratch_bytes = static_cast<std::size_t>(rows.size) * sizeof(Ranked<T>);
  return kernel;
}

/// Makes a kernel that computes argsort at only `count` places of each row.
template <typename T>
Kernel argsort_at(const RowsOf& rows, std::int64_t count, bool descending) {
  Kernel kernel{[rows, count, descending](const KernelArgs& args) {
    const T* x = as<T>(args.operands[0]);
    const auto* places = as<std::int32_t>(args.operands[1]);
    auto* order = as<std::int32_t>(args.result);
    auto* ranked = reinterpret_cast<Ranked<T>*>(args.scratch);
    for (std::int64_t r = 0; r < rows.count; ++r, x += rows.size, places += count) {
      rank_row(x, rows.size, descending, ranked);
      const std::span wanted(places, static_cast<std::size_t>(count));
      sort_between(ranked, rows.size, wanted);
      for (const std::int32_t place : wanted) {
        *order++ = place >= 0 && place < rows.size ? ranked[place].place : 0;
      }
    }
  }};
  kernel.scratch_bytes = static_cast<std::size_t>(rows.size) * sizeof(Ranked<T>);
  return kernel;
}

Kernel prepare_argsort(const Program& program, OpId op) {
  const bool descending = program.op_attrs(op)[0] != 0;
  const bool has_places = program.op_operands(op).size() == 2;
  const TensorType& type = operand_type(program, op, 0);
  const RowsOf rows(type.shape);
  const std::int64_t count = RowsOf(program.shape(program.result(op))).size;
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    return has_places ? argsort_at<T>(rows, count, descending) : argsort<T>(rows, descending);
  });
}

Kernel take_along(const Program& program, OpId op) {
  const TensorType& type = operand_type(program, op, 0);
  const RowsOf from(type.shape);
  const RowsOf to(program.shape(program.result(op)));
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    return {[from, to](const KernelArgs& args) {
      const T* x = as<T>(args.operands[0]);
      const auto* index = as<std::int32_t>(args.operands[1]);
      T* result = as<T>(args.result);
      for (std::int64_t r = 0; r < to.count; ++r, x += from.size) {
        for (std::int64_t k = 0; k < to.size; ++k, ++index, ++result) {
          *result = *index >= 0 && *index < from.size ? x[*index] : T{};
        }
      }
    }};
  });
}

/// Makes a kernel that adds elements to elements of the result's rows. bf16 and f16 are summed in
/// scratch memory and rounded once.
template <typename T>
Kernel scatter_along(const RowsOf& from, const RowsOf& to) {
  using Sum = Compute<T>;
  constexpr bool kRounds = !std::is_same_v<T, Sum>;
  Kernel kernel{[from, to](const KernelArgs& args) {
    const auto* index = as<std::int32_t>(args.operands[0]);
    const T* update = as<T>(args.operands[1]);
    T* result = as<T>(args.result);
    for (std::int64_t r = 0; r < to.count; ++r, result += to.size) {
      Sum* sums = as<Sum>(kRounds ? args.scratch : reinterpret_cast<std::byte*>(result));
      std::fill_n(sums, to.size, Sum{0});
      for (std::int64_t k = 0; k < from.size; ++k, ++index, ++update) {
        if (*index < 0 || *index >= to.size) continue;
        sums[*index] = Add{}(sums[*index], load(*update));
      }
      if constexpr (kRounds) {
        for (std::int64_t k = 0; k < to.size; ++k) result[k] = store<T>(sums[k]);
      }
    }
  }};
  if (kRounds) kernel.scratch_bytes = static_cast<std::size_t>(to.size) * sizeof(Sum);
  return kernel;
}

Kernel prepare_scatter_along(const Program& program, OpId op) {
  const TensorType& type = operand_type(program, op, 1);
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (std::is_same_v<T, Pred>) {
      return {};
    } else {
      return scatter_along<T>(RowsOf(type.shape), RowsOf(program.shape(program.result(op))));
    }
  });
}

template <typename T>
Kernel recurrence(const RowsOf& rows, bool reversed) {
  return {[rows, reversed](const KernelArgs& args) {
    const T* a = as<T>(args.operands[0]);
    const T* b = as<T>(args.operands[1]);
    T* result = as<T>(args.result);
    const std::int64_t step = reversed ? -1 : 1;
    for (std::int64_t r = 0; r < rows.count; ++r) {
      Compute<T> y = 0;
      std::int64_t i = r * rows.size + (reversed ? rows.size - 1 : 0);
      for (std::int64_t k = 0; k < rows.size; ++k, i += step) {
        y = Add{}(Multiply{}(load(a[i]), y), load(b[i]));
        result[i] = store<T>(y);
      }
    }
  }};
}

Kernel linear_recurrence(const Program& program, OpId op) {
  const TensorType& type = program.type(program.result(op));
  const bool reversed = program.op_attrs(op)[0] != 0;
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (std::is_same_v<T, Pred>) {
      return {};
    } else {
      return recurrence<T>(RowsOf(type.shape), reversed);
    }
  });
}

}  // namespace

constexpr Prepare prepares::argsort = prepare_by<prepare_argsort>;
constexpr Prepare prepares::take_along = prepare_by<kernels::take_along>;
constexpr Prepare prepares::scatter_along = prepare_by<prepare_scatter_along>;
constexpr Prepare prepares::linear_recurrence = prepare_by<kernels::linear_recurrence>;

}  // namespace weft::kernels
