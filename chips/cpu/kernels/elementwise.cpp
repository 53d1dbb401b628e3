#include "chips/cpu/kernels/elementwise.hpp"

#include <algorithm>
#include <functional>

#include "chips/cpu/kernels/half.hpp"
#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/conversion.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/math.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/vectorize.hpp"

namespace weft::kernels {
namespace {

struct Sine {
  auto operator()(auto x) const { return std::sin(x); }
};
struct Cosine {
  auto operator()(auto x) const { return std::cos(x); }
};
struct Tangent {
  auto operator()(auto x) const { return std::tan(x); }
};
struct Atan2 {
  auto operator()(auto a, auto b) const { return std::atan2(a, b); }
};
struct Floor {
  auto operator()(auto x) const { return std::floor(x); }
};
struct Ceil {
  auto operator()(auto x) const { return std::ceil(x); }
};
struct RoundNearestEven {
  auto operator()(auto x) const { return std::nearbyint(x); }
};
struct Sqrt {
  auto operator()(auto x) const { return std::sqrt(x); }
};
struct Rsqrt {
  auto operator()(auto x) const { return 1 / std::sqrt(x); }
};

struct Log {
  double operator()(double x) const { return std::log(x); }
  float operator()(float x) const { return log(x); }
};
struct LogPlusOne {
  double operator()(double x) const { return std::log1p(x); }
  float operator()(float x) const { return log_plus_one(x); }
};
struct ExponentialMinusOne {
  double operator()(double x) const { return std::expm1(x); }
  float operator()(float x) const { return exponential_minus_one(x); }
};
struct Softplus {
  double operator()(double x) const {
    return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
  }
  float operator()(float x) const { return softplus(x); }
};
struct Tanh {
  double operator()(double x) const { return std::tanh(x); }
  float operator()(float x) const { return tanh(x); }
};
struct Logistic {
  double operator()(double x) const { return 1 / (1 + std::exp(-x)); }
  float operator()(float x) const { return logistic(x); }
};
struct Erf {
  double operator()(double x) const { return std::erf(x); }
  float operator()(float x) const { return erf(x); }
};

/// Calls body(i) for 0 <= i < count.
template <typename Body>
void for_each_element(std::int64_t count, Body body) {
#pragma GCC ivdep  // the result overlaps an operand exactly or not at all
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

/// The elements of an operand. If all elements are equal and only one is stored, fills a block with
/// this element, so that one loop handles both cases.
template <typename T>
class LoopOperand {
 public:
  static constexpr std::int64_t kBlock = 512;

  LoopOperand(const KernelArgs& args, std::size_t number, std::int64_t count)
      : elements_(as<T>(args.operands[number])), is_fill_(args.is_fill[number]) {
    if (is_fill_) std::fill_n(block_, std::min(count, kBlock), *elements_);
  }

  bool is_fill() const { return is_fill_; }
  /// Returns an address from which kBlock elements (or all that remain) from element `begin` on can
  /// be read.
  const T* from(std::int64_t begin) const { return is_fill_ ? block_ : elements_ + begin; }

 private:
  const T* elements_;
  bool is_fill_;
  T block_[kBlock];
};

/// Calls body(begin, size) once for all elements, or if `in_blocks`, for one block after the other.
template <typename Body>
void for_each_piece(std::int64_t count, bool in_blocks, Body body) {
  const std::int64_t most = in_blocks ? LoopOperand<float>::kBlock : count;
  for (std::int64_t begin = 0; begin < count; begin += most) {
    body(begin, std::min(most, count - begin));
  }
}

/// True if an op with operands T and result R is on f16, so that the same op on f32 can compute it.
template <typename T, typename R>
constexpr bool kIsOfHalf = std::is_same_v<T, F16> &&
                           (std::is_same_v<R, F16> || std::is_same_v<R, Pred>);
template <typename R>
using Widened = std::conditional_t<std::is_same_v<R, F16>, float, R>;

template <typename T, typename R, Vectors most = Vectors::avx512, typename F>
Kernel unary_loop(std::int64_t size, F f) {
  if constexpr (kIsOfHalf<T, R>) {
    Kernel kernel = by_f32_blocks(size, 1, std::is_same_v<R, F16>,
                                  unary_loop<float, Widened<R>, most>(size, f));
    if (kernel.run) return kernel;
  }
  return vectorized<most>([size, f](const KernelArgs& args) {
    const T* x = as<T>(args.operands[0]);
    R* result = as<R>(args.result);
    for_each_element(std::min(size, args.count_max),
                     [=](std::int64_t i) { result[i] = store<R>(f(load(x[i]))); });
  });
}

template <typename T, typename R, typename F>
Kernel binary_loop(std::int64_t size, F f) {
  if constexpr (kIsOfHalf<T, R>) {
    Kernel kernel =
        by_f32_blocks(size, 2, std::is_same_v<R, F16>, binary_loop<float, Widened<R>>(size, f));
    if (kernel.run) return kernel;
  }
  return vectorized([size, f](const KernelArgs& args) {
    const std::int64_t count = std::min(size, args.count_max);
    const LoopOperand<T> a(args, 0, count);
    const LoopOperand<T> b(args, 1, count);
    R* result = as<R>(args.result);
    for_each_piece(count, a.is_fill() || b.is_fill(), [&](std::int64_t begin, std::int64_t length) {
      const T* x = a.from(begin);
      const T* y = b.from(begin);
      R* to = result + begin;
      for_each_element(length,
                       [=](std::int64_t i) { to[i] = store<R>(f(load(x[i]), load(y[i]))); });
    });
  });
}

/// Makes a kernel that applies f. Only floating dtypes are supported.
template <typename F>
Kernel floating(const TensorType& type, F f) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (!kIsFloating<T>) {
      return {};
    } else if constexpr (std::is_invocable_v<F, Compute<T>>) {
      return unary_loop<T, T>(type.num_elements(), f);
    } else {
      return binary_loop<T, T>(type.num_elements(), f);
    }
  });
}

/// Makes the kernel of is_finite, whose result is pred. Only floating dtypes are supported.
Kernel is_finite(const TensorType& type) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
    if constexpr (kIsFloating<T>) {
      // x - x is 0 for finite x, and NaN for infinities and NaN.
      return unary_loop<T, Pred>(type.num_elements(), [](auto x) { return x - x == 0; });
    } else {
      return {};
    }
  });
}

/// Makes a kernel that applies f. All dtypes except pred are supported.
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

/// Makes a kernel that applies f, whose result is pred. All dtypes are supported.
template <typename F>
Kernel predicate(const TensorType& type, F f) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    return binary_loop<T, Pred>(type.num_elements(), f);
  });
}

/// Returns the kernel with its two operands exchanged.
Kernel exchanged(Kernel kernel) {
  return {[run = std::move(kernel.run)](const KernelArgs& args) {
    KernelArgs other = args;
    std::swap(other.operands[0], other.operands[1]);
    std::swap(other.is_fill[0], other.is_fill[1]);
    run(other);
  }};
}

Kernel compare(const TensorType& type, CompareDirection direction) {
  switch (direction) {
    case CompareDirection::eq: return predicate(type, [](auto a, auto b) { return a == b; });
    case CompareDirection::ne: return predicate(type, [](auto a, auto b) { return a != b; });
    case CompareDirection::lt: return predicate(type, [](auto a, auto b) { return a < b; });
    case CompareDirection::le: return predicate(type, [](auto a, auto b) { return a <= b; });
    case CompareDirection::gt: return exchanged(compare(type, CompareDirection::lt));
    case CompareDirection::ge: return exchanged(compare(type, CompareDirection::le));
  }
  return {};
}

Kernel select(const TensorType& type) {
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    return vectorized([size = type.num_elements()](const KernelArgs& args) {
      const std::int64_t count = std::min(size, args.count_max);
      const Pred* predicate = as<Pred>(args.operands[0]);
      const LoopOperand<T> on_true(args, 1, count);
      const LoopOperand<T> on_false(args, 2, count);
      T* result = as<T>(args.result);
      const bool has_fill = on_true.is_fill() || on_false.is_fill();
      for_each_piece(count, has_fill, [&](std::int64_t begin, std::int64_t length) {
        const Pred* chosen = predicate + begin;
        const T* yes = on_true.from(begin);
        const T* no = on_false.from(begin);
        T* to = result + begin;
        // Both operands are read first, because a conditional load would keep the loop from being
        // vectorized.
        const auto choose = [=](std::int64_t i, T x, T y) { to[i] = load(chosen[i]) ? x : y; };
        for_each_element(length, [=](std::int64_t i) { choose(i, yes[i], no[i]); });
      });
    });
  });
}

}  // namespace

Kernel convert(const TensorType& from, DType to) {
  if (Kernel kernel = convert_by_f16c(from.num_elements(), from.dtype, to); kernel.run) {
    return kernel;
  }
  return visit_dtype(from.dtype, [&]<typename T>(std::type_identity<T>) {
    return visit_dtype(to, [&]<typename R>(std::type_identity<R>) {
      // Conversions without f32 are rare, so they are compiled only once, to save time in the
      // build.
      constexpr bool is_usual = std::is_same_v<T, float> || std::is_same_v<R, float>;
      constexpr Vectors most = is_usual ? Vectors::avx512 : Vectors::portable;
      return unary_loop<T, R, most>(from.num_elements(),
                                    [](Compute<T> x) { return converted<Compute<R>>(x); });
    });
  });
}

namespace {

// Each of the following functions makes the kernel of an op for the type of the op's first operand.

const TensorType& operand_of(const Program& program, OpId op) {
  return program.type(program.op_operands(op)[0]);
}

template <typename F>
Kernel floating_op(const Program& program, OpId op) {
  return floating(operand_of(program, op), F{});
}

template <typename F>
Kernel numeric_op(const Program& program, OpId op) {
  return numeric(operand_of(program, op), F{});
}

Kernel finiteness(const Program& program, OpId op) { return is_finite(operand_of(program, op)); }

Kernel conversion(const Program& program, OpId op) {
  return convert(operand_of(program, op), program.type(program.result(op)).dtype);
}

Kernel comparison(const Program& program, OpId op) {
  const auto direction = static_cast<CompareDirection>(program.op_attrs(op)[0]);
  return compare(operand_of(program, op), direction);
}

/// Makes the kernel of a logical op. Only pred is supported.
template <typename F>
Kernel logical_op(const Program& program, OpId op) {
  const TensorType& type = operand_of(program, op);
  if (type.dtype != DType::pred) return {};
  if constexpr (std::is_invocable_v<F, bool>) {
    return unary_loop<Pred, Pred>(type.num_elements(), F{});
  } else {
    return binary_loop<Pred, Pred>(type.num_elements(), F{});
  }
}

Kernel selection(const Program& program, OpId op) {
  return select(program.type(program.result(op)));
}

}  // namespace

constexpr Prepare prepares::negate = prepare_by<numeric_op<Negate>>;
constexpr Prepare prepares::sign = prepare_by<numeric_op<Sign>>;
constexpr Prepare prepares::abs = prepare_by<numeric_op<Abs>>;
constexpr Prepare prepares::exponential = prepare_by<floating_op<Exponential>>;
constexpr Prepare prepares::log = prepare_by<floating_op<Log>>;
constexpr Prepare prepares::tanh = prepare_by<floating_op<Tanh>>;
constexpr Prepare prepares::sine = prepare_by<floating_op<Sine>>;
constexpr Prepare prepares::cosine = prepare_by<floating_op<Cosine>>;
constexpr Prepare prepares::logistic = prepare_by<floating_op<Logistic>>;
constexpr Prepare prepares::sqrt = prepare_by<floating_op<Sqrt>>;
constexpr Prepare prepares::rsqrt = prepare_by<floating_op<Rsqrt>>;
constexpr Prepare prepares::softplus = prepare_by<floating_op<Softplus>>;
constexpr Prepare prepares::floor = prepare_by<floating_op<Floor>>;
constexpr Prepare prepares::ceil = prepare_by<floating_op<Ceil>>;
constexpr Prepare prepares::round_nearest_even = prepare_by<floating_op<RoundNearestEven>>;
constexpr Prepare prepares::log_plus_one = prepare_by<floating_op<LogPlusOne>>;
constexpr Prepare prepares::exponential_minus_one = prepare_by<floating_op<ExponentialMinusOne>>;
constexpr Prepare prepares::erf = prepare_by<floating_op<Erf>>;
constexpr Prepare prepares::tan = prepare_by<floating_op<Tangent>>;
constexpr Prepare prepares::atan2 = prepare_by<floating_op<Atan2>>;
constexpr Prepare prepares::remainder = prepare_by<numeric_op<Remainder>>;
constexpr Prepare prepares::is_finite = prepare_by<finiteness>;
constexpr Prepare prepares::convert = prepare_by<conversion>;
constexpr Prepare prepares::add = prepare_by<numeric_op<Add>>;
constexpr Prepare prepares::subtract = prepare_by<numeric_op<Subtract>>;
constexpr Prepare prepares::multiply = prepare_by<numeric_op<Multiply>>;
constexpr Prepare prepares::divide = prepare_by<numeric_op<Divide>>;
constexpr Prepare prepares::maximum = prepare_by<numeric_op<Maximum>>;
constexpr Prepare prepares::minimum = prepare_by<numeric_op<Minimum>>;
constexpr Prepare prepares::power = prepare_by<numeric_op<Power>>;
constexpr Prepare prepares::compare = prepare_by<comparison>;
constexpr Prepare prepares::logical_and = prepare_by<logical_op<std::logical_and<bool>>>;
constexpr Prepare prepares::logical_or = prepare_by<logical_op<std::logical_or<bool>>>;
constexpr Prepare prepares::logical_xor = prepare_by<logical_op<std::not_equal_to<bool>>>;
constexpr Prepare prepares::logical_not = prepare_by<logical_op<std::logical_not<bool>>>;
constexpr Prepare prepares::select = prepare_by<selection>;

}  // namespace weft::kernels
