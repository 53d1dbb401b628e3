/// Ops along the last dim in which an element's place counts.

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "actors/device/cpu/loops/arithmetic.hpp"
#include "actors/device/cpu/loops/element.hpp"
#include "actors/device/cpu/loops/prepares.hpp"
#include "actors/device/cpu/loops/vectorize.hpp"

namespace weft::kernels {
namespace {

struct RowsOf {
  std::int64_t count = 1;
  std::int64_t size;  ///< of the last dim

  explicit RowsOf(const Shape& shape) : size(shape[shape.size() - 1]) {
    for (int dim = 0; dim + 1 < shape.size(); ++dim) count *= shape[dim];
  }
};

const TensorType& operand_type(const Program& program, OpId op, std::size_t i) {
  return program.type(program.op_operands(op)[i]);
}

/// NaN is the largest.
template <typename C>
bool is_less(C a, C b) {
  return a < b || (b != b && a == a);
}

Kernel argsort(const Program& program, OpId op) {
  const bool descending = program.op_attrs(op)[0] != 0;
  const TensorType& type = operand_type(program, op, 0);
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    return {[rows = RowsOf(type.shape), descending](const KernelArgs& args) {
      const T* x = as<T>(args.operands[0]);
      auto* order = as<std::int32_t>(args.result);
      for (std::int64_t r = 0; r < rows.count; ++r, x += rows.size, order += rows.size) {
        std::iota(order, order + rows.size, 0);
        // Equal elements are told apart by their places: std::stable_sort would allocate memory.
        std::sort(order, order + rows.size, [&](std::int32_t i, std::int32_t k) {
          const auto a = load(descending ? x[k] : x[i]);
          const auto b = load(descending ? x[i] : x[k]);
          return is_less(a, b) || (i < k && !is_less(b, a));
        });
      }
    }};
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

/// A dtype that isn't computed in itself (bf16) is summed in scratch memory and rounded once.
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

constexpr Prepare prepares::argsort = prepare_by<kernels::argsort>;
constexpr Prepare prepares::take_along = prepare_by<kernels::take_along>;
constexpr Prepare prepares::scatter_along = prepare_by<prepare_scatter_along>;
constexpr Prepare prepares::linear_recurrence = prepare_by<kernels::linear_recurrence>;

}  // namespace weft::kernels
