#pragma once
/// The C++ types of the dtypes, and visit_dtype(), which chooses one of them at run time.

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <weft/tensor/element.hpp>
#include <weft/tensor/type.hpp>

namespace weft::kernels {

/// An element of dtype pred: 0 or 1.
enum class Pred : std::uint8_t {};

/// The type in which elements of type T are computed.
template <typename T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<Bf16> {
  using type = float;
};
template <>
struct ComputeOf<F16> {
  using type = float;
};
template <>
struct ComputeOf<Pred> {
  using type = bool;
};
template <typename T>
using Compute = typename ComputeOf<T>::type;

template <typename T>
Compute<T> load(T element) {
  return static_cast<Compute<T>>(element);
}
template <typename T>
T store(Compute<T> value) {
  return static_cast<T>(value);
}

template <typename T>
inline constexpr bool kIsFloating = std::is_floating_point_v<Compute<T>>;

/// Calls `visit(std::type_identity<T>{})` with the element type of the dtype.
template <typename Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::pred: return visit(std::type_identity<Pred>{});
    case DType::i32: return visit(std::type_identity<std::int32_t>{});
    case DType::u32: return visit(std::type_identity<std::uint32_t>{});
    case DType::i64: return visit(std::type_identity<std::int64_t>{});
    case DType::bf16: return visit(std::type_identity<Bf16>{});
    case DType::f32: return visit(std::type_identity<float>{});
    case DType::f64: return visit(std::type_identity<double>{});
    case DType::f16: return visit(std::type_identity<F16>{});
    case DType::i8: return visit(std::type_identity<std::int8_t>{});
    case DType::u8: return visit(std::type_identity<std::uint8_t>{});
  }
  fail(Errc::corrupt, "dtype {} is unknown", static_cast<int>(dtype));
}

/// lowest() and highest() return the smallest and largest value: infinities if the type has them.
template <typename C>
constexpr C lowest() {
  using Limits = std::numeric_limits<C>;
  if constexpr (Limits::has_infinity) return -Limits::infinity();
  return Limits::lowest();
}
template <typename C>
constexpr C highest() {
  using Limits = std::numeric_limits<C>;
  if constexpr (Limits::has_infinity) return Limits::infinity();
  return Limits::max();
}

template <typename T>
const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <typename T>
T* as(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

}  // namespace weft::kernels
