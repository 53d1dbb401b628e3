#include <weft/actors/device/kernels/elementwise.hpp>

#include <algorithm>

#include <weft/actors/device/kernels/arithmetic.hpp>
#include <weft/actors/device/kernels/element.hpp>
#include <weft/actors/device/kernels/math.hpp>
#include <weft/actors/device/kernels/vectorize.hpp>

namespace weft::kernels {
namespace {

template <typename T, typename R, typename F>
Kernel unary_loop(std::int64_t size, F f) {
  return vectorized([size, f](const KernelArgs& args) {
    const std::int64_t count = std::min(size, args.count_max);
    const T* x = as<T>(args.operands[0]);
    R* result = as<R>(args.result);
#pragma GCC ivdep  // the result may lie where an operand does, element for element
    for (std::int64_t i = 0; i < count; ++i) result[i] = store<R>(f(load(x[i])));
  });
}

template <typename T, typename R, typename F>
Kernel binary_loop(std::int64_t size, F f) {
  return vectorized([size, f](const KernelArgs& args) {
    const std::int64_t count = std::min(size, args.count_max);
    const T* a = as<T>(args.operands[0]);
    const T* b = as<T>(args.operands[1]);
    R* result = as<R>(args.result);
#pragma GCC ivdep  // the result may lie where an operand does, element for element
    for (std::int64_t i = 0; i < count; ++i) result[i] = store<R>(f(load(a[i]), load(b[i])));
  });
}

/// For floating dtypes only.
template <typename F>
Kernel floating(const TensorType& type, F f) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (kIsFloating<T>) {
      return unary_loop<T, T>(type.num_elements(), f);
    } else {
      return {};
    }
  });
}

/// For floating dtypes only; the result is pred.
Kernel is_finite(const TensorType& type) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (kIsFloating<T>) {
      // What is left of infinity and NaN is NaN.
      return unary_loop<T, Pred>(type.num_elements(), [](auto x) { return x - x == 0; });
    } else {
      return {};
    }
  });
}

/// For all dtypes but pred.
template <typename F>
Kernel numeric(const TensorType& type, F f) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (std::is_same_v<T, Pred>) {
      return {};
    } else if constexpr (std::is_invocable_v<F, Compute<T>>) {
      return unary_loop<T, T>(type.num_elements(), f);
    } else {
      return binary_loop<T, T>(type.num_elements(), f);
    }
  });
}

/// For all dtypes; the result is pred.
template <typename F>
Kernel predicate(const TensorType& type, F f) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    return binary_loop<T, Pred>(type.num_elements(), f);
  });
}

Kernel compare(const TensorType& type, CompareDirection direction) {
  switch (direction) {
    case CompareDirection::eq: return predicate(type, [](auto a, auto b) { return a == b; });
    case CompareDirection::ne: return predicate(type, [](auto a, auto b) { return a != b; });
    case CompareDirection::lt: return predicate(type, [](auto a, auto b) { return a < b; });
    case CompareDirection::le: return predicate(type, [](auto a, auto b) { return a <= b; });
    case CompareDirection::gt: return predicate(type, [](auto a, auto b) { return a > b; });
    case CompareDirection::ge: return predicate(type, [](auto a, auto b) { return a >= b; });
  }
  return {};
}

Kernel select(const TensorType& type) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    return vectorized([size = type.num_elements()](const KernelArgs& args) {
      const std::int64_t count = std::min(size, args.count_max);
      const Pred* predicate = as<Pred>(args.operands[0]);
      const T* on_true = as<T>(args.operands[1]);
      const T* on_false = as<T>(args.operands[2]);
      T* result = as<T>(args.result);
#pragma GCC ivdep  // the result may lie where an operand does, element for element
      for (std::int64_t i = 0; i < count; ++i) {
        // Both are read first: a conditional load would keep the loop from being vectorised.
        const T yes = on_true[i];
        const T no = on_false[i];
        result[i] = load(predicate[i]) ? yes : no;
      }
    });
  });
}

}  // namespace

Kernel convert(const TensorType& from, DType to) {
  return visit_dtype(from.dtype, [&]<typename T>(std::type_identity<T>) {
    return visit_dtype(to, [&]<typename R>(std::type_identity<R>) {
      return unary_loop<T, R>(from.num_elements(),
                              [](Compute<T> x) { return converted<Compute<R>>(x); });
    });
  });
}

Kernel elementwise(const Program& program, OpId op) {
  const TensorType& type = program.type(program.op_operands(op)[0]);
  const TensorType& result = program.type(program.result(op));
  switch (program.kind(op)) {
    case OpKind::negate: return numeric(type, Negate{});
    case OpKind::sign: return numeric(type, Sign{});
    case OpKind::abs: return numeric(type, Abs{});
    case OpKind::exponential: return floating(type, Exponential{});
    case OpKind::log: return floating(type, Log{});
    case OpKind::tanh: return floating(type, Tanh{});
    case OpKind::sine: return floating(type, [](auto x) { return std::sin(x); });
    case OpKind::cosine: return floating(type, [](auto x) { return std::cos(x); });
    case OpKind::logistic: return floating(type, Logistic{});
    case OpKind::sqrt: return floating(type, [](auto x) { return std::sqrt(x); });
    case OpKind::rsqrt: return floating(type, [](auto x) { return 1 / std::sqrt(x); });
    case OpKind::is_finite: return is_finite(type);
    case OpKind::convert: return convert(type, result.dtype);
    case OpKind::add: return numeric(type, Add{});
    case OpKind::subtract: return numeric(type, Subtract{});
    case OpKind::multiply: return numeric(type, Multiply{});
    case OpKind::divide: return numeric(type, Divide{});
    case OpKind::maximum: return numeric(type, Maximum{});
    case OpKind::minimum: return numeric(type, Minimum{});
    case OpKind::power: return numeric(type, Power{});
    case OpKind::compare:
      return compare(type, static_cast<CompareDirection>(program.op_attrs(op)[0]));
    case OpKind::logical_and:
      if (type.dtype != DType::pred) return {};
      return binary_loop<Pred, Pred>(type.num_elements(), [](bool a, bool b) { return a && b; });
    case OpKind::select: return select(result);
    default: return {};
  }
}

}  // namespace weft::kernels
