/// Elements in vectors, and how two are combined. Included by reduce_kernel.hpp only.

#include <cstddef>
#include <cstdint>

namespace weft {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <typename T, std::size_t lanes>
struct VectorOf {
  using Type [[gnu::vector_size(lanes * sizeof(T))]] = T;
};
template <typename T, std::size_t lanes>
using Vector = typename VectorOf<T, lanes>::Type;

/// An element type that is combined as it is stored.
template <typename T>
struct Plain {
  using Stored = T;
  using Combined = T;
  static constexpr std::size_t kLanes = kVectorBytes / sizeof(T);

  static Vector<T, kLanes> widen(Vector<T, kLanes> values) { return values; }
  static Vector<T, kLanes> narrow(Vector<T, kLanes> values) { return values; }
};

struct Bf16 {
  using Stored = std::uint16_t;
  using Combined = float;
  static constexpr std::size_t kLanes = kVectorBytes / sizeof(float);
  using Bits = Vector<std::uint32_t, kLanes>;

  static Vector<float, kLanes> widen(Vector<std::uint16_t, kLanes> values) {
    return reinterpret_cast<Vector<float, kLanes>>(__builtin_convertvector(values, Bits) << 16);
  }
  /// Rounds to nearest even. The carry of rounding could turn a NaN into an infinity, so a NaN is
  /// made quiet instead.
  static Vector<std::uint16_t, kLanes> narrow(Vector<float, kLanes> values) {
    const Bits bits = reinterpret_cast<Bits>(values);
    const Bits rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const Bits quiet_nan = bits >> 16 | 0x40U;
    return __builtin_convertvector(values != values ? quiet_nan : rounded,
                                   Vector<std::uint16_t, kLanes>);
  }
};

template <typename T>
struct Unsigned {
  using Type = T;
};
template <>
struct Unsigned<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct Unsigned<std::int64_t> {
  using Type = std::uint64_t;
};

/// Integers wrap.
template <typename Element>
struct Add {
  using Values = Vector<typename Element::Combined, Element::kLanes>;
  using Sums = Vector<typename Unsigned<typename Element::Combined>::Type, Element::kLanes>;
  static Values combine(Values a, Values b) {
    return reinterpret_cast<Values>(reinterpret_cast<Sums>(a) + reinterpret_cast<Sums>(b));
  }
};
/// Keeps a NaN: comparisons with it are false, and it differs from itself.
template <typename Element>
struct Max {
  using Values = Vector<typename Element::Combined, Element::kLanes>;
  static Values combine(Values a, Values b) { return ((b > a) | (b != b)) ? b : a; }
};
template <typename Element>
struct Min {
  using Values = Vector<typename Element::Combined, Element::kLanes>;
  static Values combine(Values a, Values b) { return ((b < a) | (b != b)) ? b : a; }
};

}  // namespace
}  // namespace weft
