/// The element types as vectors, and functions that combine two vectors. Only reduce_kernel.hpp
/// includes this file.

#include <cstddef>
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

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

/// An element type that is combined in the type in which it is stored.
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
  /// Rounds to nearest even. Makes a NaN quiet instead of rounding it, because the carry of
  /// rounding could turn the NaN into an infinity.
  static Vector<std::uint16_t, kLanes> narrow(Vector<float, kLanes> values) {
    const Bits bits = reinterpret_cast<Bits>(values);
    const Bits rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const Bits quiet_nan = bits >> 16 | 0x40U;
    return __builtin_convertvector(values != values ? quiet_nan : rounded,
                                   Vector<std::uint16_t, kLanes>);
  }
};

/// The same conversions as those of F16 in <weft/tensor.hpp>. With AVX, instructions do them.
struct F16 {
  using Stored = std::uint16_t;
  using Combined = float;
  static constexpr std::size_t kLanes = kVectorBytes / sizeof(float);
  using Halves = Vector<std::uint16_t, kLanes>;
  using Floats = Vector<float, kLanes>;

#if defined(__AVX512F__)
  // The masked instruction is used because g++ 12 warns about its own header for the unmasked one.
  static constexpr __mmask16 kAll = 0xffff;
  static Floats widen(Halves values) {
    return reinterpret_cast<Floats>(_mm512_maskz_cvtph_ps(kAll, reinterpret_cast<__m256i>(values)));
  }
  static Halves narrow(Floats values) {
    return reinterpret_cast<Halves>(
        _mm512_maskz_cvtps_ph(kAll, reinterpret_cast<__m512>(values), _MM_FROUND_TO_NEAREST_INT));
  }
#elif defined(__F16C__)
  static Floats widen(Halves values) {
    return reinterpret_cast<Floats>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(values)));
  }
  static Halves narrow(Floats values) {
    return reinterpret_cast<Halves>(
        _mm256_cvtps_ph(reinterpret_cast<__m256>(values), _MM_FROUND_TO_NEAREST_INT));
  }
#else
  using Bits = Vector<std::uint32_t, kLanes>;
  static Floats widen(Halves values) {
    const Bits half = __builtin_convertvector(values, Bits);
    const Bits positive = (half & 0x7fffU) << 13;
    const Bits scaled = reinterpret_cast<Bits>(reinterpret_cast<Floats>(positive) * 0x1p112F);
    const Bits infinity = positive >= 0xf800000U ? Bits{} + 0x7f800000U : Bits{};
    const Bits quiet = positive > 0xf800000U ? Bits{} + 0x400000U : Bits{};
    return reinterpret_cast<Floats>(scaled | infinity | quiet | (half & 0x8000U) << 16);
  }
  static Halves narrow(Floats values) {
    const Bits word = reinterpret_cast<Bits>(values);
    const Bits positive = word & 0x7fffffffU;
    const Bits nan = 0x7e00U | (positive >> 13 & 0x3ffU);
    const Bits normal = (positive - 0x38000000U + 0xfffU + (positive >> 13 & 1U)) >> 13;
    const Bits small =
        reinterpret_cast<Bits>(reinterpret_cast<Floats>(positive) + 0.5F) - 0x3f000000U;
    const Bits finite = positive < 0x38800000U ? small : normal;
    const Bits large = positive > 0x7f800000U ? nan : Bits{} + 0x7c00U;
    return __builtin_convertvector(
        (word >> 16 & 0x8000U) | (positive < 0x47800000U ? finite : large), Halves);
  }
#endif
};

template <typename T>
struct Unsigned {
  using Type = T;
};
template <>
struct Unsigned<std::int8_t> {
  using Type = std::uint8_t;
};
template <>
struct Unsigned<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct Unsigned<std::int64_t> {
  using Type = std::uint64_t;
};

/// Adds two vectors. Integers wrap around.
template <typename Element>
struct Add {
  using Values = Vector<typename Element::Combined, Element::kLanes>;
  using Sums = Vector<typename Unsigned<typename Element::Combined>::Type, Element::kLanes>;
  static Values combine(Values a, Values b) {
    return reinterpret_cast<Values>(reinterpret_cast<Sums>(a) + reinterpret_cast<Sums>(b));
  }
};
/// Returns NaN if a or b is NaN. (Comparisons with a NaN are false; a NaN differs from itself.)
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
