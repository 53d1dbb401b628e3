/// Kernels of ops on rows along the last dim. A row is read from memory once and then processed in
/// a buffer. bf16 is computed in f32 and rounded once. The result for a row depends only on the
/// elements of this row.

#include <algorithm>
#include <cmath>

#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/math.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/run_sum.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "spmd/ops/attribute_views.hpp"

namespace weft::kernels {
namespace {

/// One row of each operand (`b` is `a` if there is only one operand), and buffers as large as a
/// row.
template <typename T>
struct Row {
  const T* a;
  const T* b;
  T* result;
  Compute<T>* buffer;
  Compute<T>* other;
  std::int64_t size;
};

template <typename T>
Compute<T> sum_of(const T* x, std::int64_t size) {
  return combine_run(x, size, Compute<T>{0}, Add{});
}

/// Writes e^(x - top) to the buffer for each element x, where top is the largest x. Returns top and
/// the sum of the powers.
template <typename T>
std::pair<Compute<T>, Compute<T>> powers(const T* x, std::int64_t size, Compute<T>* buffer) {
  using C = Compute<T>;
  const C top = combine_run(x, size, lowest<C>(), Maximum{});
  for (std::int64_t i = 0; i < size; ++i) buffer[i] = Exponential{}(load(x[i]) - top);
  return {top, sum_of(buffer, size)};
}

struct Softmax {
  template <typename T>
  void operator()(const Row<T>& row) const {
    const auto [top, sum] = powers(row.a, row.size, row.buffer);
    const auto share = 1 / sum;
    for (std::int64_t i = 0; i < row.size; ++i) row.result[i] = store<T>(row.buffer[i] * share);
  }
};

struct LogSoftmax {
  template <typename T>
  void operator()(const Row<T>& row) const {
    const auto [top, sum] = powers(row.a, row.size, row.buffer);
    const auto log_sum = std::log(sum);
    for (std::int64_t i = 0; i < row.size; ++i) {
      row.result[i] = store<T>((load(row.a[i]) - top) - log_sum);
    }
  }
};

struct SoftmaxGrad {
  template <typename T>
  void operator()(const Row<T>& row) const {
    for (std::int64_t i = 0; i < row.size; ++i) row.buffer[i] = load(row.a[i]) * load(row.b[i]);
    const auto along = sum_of(row.buffer, row.size);
    for (std::int64_t i = 0; i < row.size; ++i) {
      row.result[i] = store<T>(load(row.a[i]) * (load(row.b[i]) - along));
    }
  }
};

struct LogSoftmaxGrad {
  template <typename T>
  void operator()(const Row<T>& row) const {
    const auto sum = sum_of(row.b, row.size);
    for (std::int64_t i = 0; i < row.size; ++i) {
      row.result[i] = store<T>(load(row.b[i]) - Exponential{}(load(row.a[i])) * sum);
    }
  }
};

struct Normalize {
  Normalization normalization;

  /// Writes x - mean to the buffer for each element x. Returns the factor by which the buffer must
  /// be multiplied to normalize it.
  template <typename T>
  Compute<T> center(const Row<T>& row) const {
    using C = Compute<T>;
    const C share = 1 / static_cast<C>(row.size);
    const C mean = normalization.center ? sum_of(row.a, row.size) * share : C{0};
    for (std::int64_t i = 0; i < row.size; ++i) {
      const C x = load(row.a[i]) - mean;
      row.buffer[i] = x;
      row.other[i] = x * x;
    }
    const C square = sum_of(row.other, row.size) * share;
    return 1 / std::sqrt(square + static_cast<C>(normalization.eps));
  }

  template <typename T>
  void operator()(const Row<T>& row) const {
    const auto scale = center(row);
    for (std::int64_t i = 0; i < row.size; ++i) row.result[i] = store<T>(row.buffer[i] * scale);
  }
};

struct NormalizeGrad {
  Normalize forward;

  template <typename T>
  void operator()(const Row<T>& row) const {
    using C = Compute<T>;
    const C scale = forward.center(row);
    const C share = 1 / static_cast<C>(row.size);
    for (std::int64_t i = 0; i < row.size; ++i) {
      row.buffer[i] *= scale;
      row.other[i] = row.buffer[i] * load(row.b[i]);
    }
    const C mean = forward.normalization.center ? sum_of(row.b, row.size) * share : C{0};
    const C along = sum_of(row.other, row.size) * share;
    for (std::int64_t i = 0; i < row.size; ++i) {
      row.result[i] = store<T>(scale * ((load(row.b[i]) - mean) - row.buffer[i] * along));
    }
  }
};

/// Makes a kernel that calls `body` for each row.
template <typename T, typename Body>
Kernel for_rows(const Program& program, OpId op, Body body) {
  const Shape& shape = program.shape(program.result(op));
  const auto leading =
      std::span<const std::int64_t>(shape).first(static_cast<std::size_t>(shape.size() - 1));
  const std::int64_t count = Shape(leading).num_elements();
  const std::int64_t size = shape[shape.size() - 1];
  const std::size_t last = program.op_operands(op).size() - 1;
  Kernel kernel = vectorized([=](const KernelArgs& args) {
    auto* buffer = as<Compute<T>>(args.scratch);
    Row<T> row{as<T>(args.operands[0]), as<T>(args.operands[last]),
               as<T>(args.result),      buffer,
               buffer + size,           size};
    for (std::int64_t i = 0; i < count; ++i) {
      body(row);
      row.a += size;
      row.b += size;
      row.result += size;
    }
  });
  kernel.scratch_bytes = 2 * static_cast<std::size_t>(size) * sizeof(Compute<T>);
  return kernel;
}

template <typename T>
Kernel losses(std::int64_t count, std::int64_t classes) {
  return vectorized([=](const KernelArgs& args) {
    const T* x = as<T>(args.operands[0]);
    const auto* labels = as<std::int32_t>(args.operands[1]);
    T* result = as<T>(args.result);
    for (std::int64_t row = 0; row < count; ++row, x += classes) {
      Compute<T> loss{0};
      if (const std::int64_t label = labels[row]; label >= 0 && label < classes) {
        const auto [top, sum] = powers(x, classes, as<Compute<T>>(args.scratch));
        loss = std::log(sum) - (load(x[label]) - top);
      }
      result[row] = store<T>(loss);
    }
  });
}

/// Makes a kernel that computes softmax(x), subtracts 1 at the label, and multiplies by g.
template <typename T>
Kernel losses_grad(std::int64_t count, std::int64_t classes) {
  return vectorized([=](const KernelArgs& args) {
    using C = Compute<T>;
    const T* x = as<T>(args.operands[0]);
    const auto* labels = as<std::int32_t>(args.operands[1]);
    const T* g = as<T>(args.operands[2]);
    T* result = as<T>(args.result);
    C* buffer = as<C>(args.scratch);
    for (std::int64_t row = 0; row < count; ++row, x += classes, result += classes) {
      const std::int64_t label = labels[row];
      if (label < 0 || label >= classes) {
        std::fill_n(result, classes, store<T>(C{0}));
        continue;
      }
      const C slope = load(g[row]);
      const C share = 1 / powers(x, classes, buffer).second;
      for (std::int64_t i = 0; i < classes; ++i) result[i] = store<T>(buffer[i] * share * slope);
      result[label] = store<T>((buffer[label] * share - 1) * slope);
    }
  });
}

template <typename Body>
Kernel by_row(const Program& program, OpId op, Body body) {
  const DType dtype = program.type(program.result(op)).dtype;
  return visit_dtype(dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (kIsFloating<T>) {
      return for_rows<T>(program, op, body);
    } else {
      return {};
    }
  });
}

template <typename Body>
Kernel row_op(const Program& program, OpId op) {
  return by_row(program, op, Body{});
}

template <typename Body>
Kernel normalizing(const Program& program, OpId op) {
  return by_row(program, op, Body{{normalization_of(program.op_attrs(op))}});
}

Kernel losses_of(const Program& program, OpId op) {
  const auto operands = program.op_operands(op);
  const auto& [dtype, shape] = program.type(operands[0]);
  const std::int64_t count = program.type(operands[1]).num_elements();
  const std::int64_t classes = shape[shape.size() - 1];
  return visit_dtype(dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (kIsFloating<T>) {
      const bool is_grad = program.kind(op) == OpKind::cross_entropy_grad;
      Kernel kernel = is_grad ? losses_grad<T>(count, classes) : losses<T>(count, classes);
      kernel.scratch_bytes = static_cast<std::size_t>(classes) * sizeof(Compute<T>);
      return kernel;
    } else {
      return {};
    }
  });
}

}  // namespace

constexpr Prepare prepares::softmax = prepare_by<row_op<Softmax>>;
constexpr Prepare prepares::log_softmax = prepare_by<row_op<LogSoftmax>>;
constexpr Prepare prepares::softmax_grad = prepare_by<row_op<SoftmaxGrad>>;
constexpr Prepare prepares::log_softmax_grad = prepare_by<row_op<LogSoftmaxGrad>>;
constexpr Prepare prepares::normalize = prepare_by<normalizing<Normalize>>;
constexpr Prepare prepares::normalize_grad = prepare_by<normalizing<NormalizeGrad>>;
constexpr Prepare prepares::cross_entropy = prepare_by<losses_of>;
constexpr Prepare prepares::cross_entropy_grad = prepare_by<losses_of>;

}  // namespace weft::kernels
