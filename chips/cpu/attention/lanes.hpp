#pragma once
/// Lanes: a vector of numbers, with the steps of float_steps.hpp. Each lane is computed by the same
/// steps as a single number, so results don't depend on the size of vectors. The functions must be
/// inlined into functions that are compiled for vectors of this size, where each step takes one
/// instruction or a few.

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "chips/cpu/loops/math.hpp"

namespace weft::kernels {

template <typename C, int kBytes>
struct Lanes {
  typedef C Vector __attribute__((vector_size(kBytes)));
  static constexpr int kCount = kBytes / static_cast<int>(sizeof(C));

  Lanes() = default;
  explicit Lanes(C x) {
    for (int i = 0; i < kCount; ++i) v[i] = x;
  }
  /// load() and store() accept unaligned addresses.
  static Lanes load(const C* from) {
    Lanes x;
    x.v = reinterpret_cast<const Loose*>(from)->v;
    return x;
  }
  void store(C* to) const { reinterpret_cast<Loose*>(to)->v = v; }
  /// Returns the lanes first, first + 1, ...
  static Lanes count_from(C first) {
    Lanes x;
    for (int i = 0; i < kCount; ++i) x.v[i] = first + static_cast<C>(i);
    return x;
  }

  Vector v{};

 private:
  struct [[gnu::may_alias, gnu::packed, gnu::aligned(alignof(C))]] Loose {
    Vector v;
  };
};

template <typename C, int kBytes>
Lanes<C, kBytes> operator+(Lanes<C, kBytes> a, const Lanes<C, kBytes>& b) {
  a.v += b.v;
  return a;
}
template <typename C, int kBytes>
Lanes<C, kBytes> operator-(Lanes<C, kBytes> a, const Lanes<C, kBytes>& b) {
  a.v -= b.v;
  return a;
}
template <typename C, int kBytes>
Lanes<C, kBytes> operator*(Lanes<C, kBytes> a, const Lanes<C, kBytes>& b) {
  a.v *= b.v;
  return a;
}

template <typename C, int kBytes>
Lanes<C, kBytes> fused(const Lanes<C, kBytes>& a, const Lanes<C, kBytes>& b, Lanes<C, kBytes> c) {
  // Copies the vectors, because the compiler doesn't turn the loop into one instruction if it works
  // on references.
  const auto x = a.v;
  const auto y = b.v;
  auto sum = c.v;
  for (int i = 0; i < Lanes<C, kBytes>::kCount; ++i) sum[i] = std::fma(x[i], y[i], sum[i]);
  c.v = sum;
  return c;
}

/// Returns the larger of a and b in each lane, or b if a or b is NaN.
template <typename C, int kBytes>
Lanes<C, kBytes> larger(Lanes<C, kBytes> a, const Lanes<C, kBytes>& b) {
  a.v = a.v > b.v ? a.v : b.v;
  return a;
}
template <typename C, int kBytes>
Lanes<C, kBytes> where_less(const Lanes<C, kBytes>& a, const Lanes<C, kBytes>& b,
                            Lanes<C, kBytes> then, const Lanes<C, kBytes>& otherwise) {
  then.v = a.v < b.v ? then.v : otherwise.v;
  return then;
}

/// Returns e^x if x <= 0 or x is NaN, but 0 if x < -87, where exponential() would be subnormal.
/// Other results in f32 have the same bits as exponential(x), although 2^n is a single factor here.
template <int kBytes>
Lanes<float, kBytes> weight_of(const Lanes<float, kBytes>& x) {
  using V = Lanes<float, kBytes>;
  const Powers<V> powers(x);
  V scale = powers.n + V(kRound);
  for (int i = 0; i < V::kCount; ++i) {
    const auto n = std::bit_cast<std::uint32_t>(scale.v[i]);
    scale.v[i] = std::bit_cast<float>((n << 23) + std::bit_cast<std::uint32_t>(1.0F));
  }
  return where_less(x, V(-87.0F), V(0.0F), (V(1.0F) + powers.power_minus_one) * scale);
}
template <int kBytes>
Lanes<double, kBytes> weight_of(Lanes<double, kBytes> x) {
  for (int i = 0; i < Lanes<double, kBytes>::kCount; ++i) x.v[i] = std::exp(x.v[i]);
  return x;
}

template <typename V, int... kLanes>
void transpose_lanes(V (&rows)[V::kCount], std::integer_sequence<int, kLanes...>) {
  // A step exchanges lanes between rows i and i + kBit: the lanes whose number has bit kBit in row
  // i, and the lanes whose number lacks the bit in row i + kBit.
  const auto step = [&]<int kBit>(std::integral_constant<int, kBit>) {
    for (int i = 0; i < V::kCount; ++i) {
      if ((i & kBit) != 0) continue;
      const typename V::Vector a = rows[i].v;
      const typename V::Vector b = rows[i + kBit].v;
      rows[i].v = __builtin_shufflevector(
          a, b, ((kLanes & kBit) != 0 ? V::kCount + kLanes - kBit : kLanes)...);
      rows[i + kBit].v = __builtin_shufflevector(
          a, b, ((kLanes & kBit) != 0 ? V::kCount + kLanes : kLanes + kBit)...);
    }
  };
  if constexpr (V::kCount > 8) step(std::integral_constant<int, 8>{});
  if constexpr (V::kCount > 4) step(std::integral_constant<int, 4>{});
  if constexpr (V::kCount > 2) step(std::integral_constant<int, 2>{});
  step(std::integral_constant<int, 1>{});
}
/// Transposes a square block of kCount rows and lanes.
template <typename V>
void transpose(V (&rows)[V::kCount]) {
  transpose_lanes(rows, std::make_integer_sequence<int, V::kCount>{});
}
/// Transposes a matrix whose numbers of rows and columns are multiples of kCount. Rows of the
/// operand are `from_row` elements apart, rows of the result `to_row` elements.
template <typename V, typename C>
void transpose(std::int64_t rows, std::int64_t columns, const C* from, std::int64_t from_row, C* to,
               std::int64_t to_row) {
  for (std::int64_t i = 0; i < rows; i += V::kCount) {
    for (std::int64_t j = 0; j < columns; j += V::kCount) {
      V block[V::kCount];
      for (std::int64_t r = 0; r < V::kCount; ++r) {
        block[r] = V::load(from + (i + r) * from_row + j);
      }
      transpose(block);
      for (std::int64_t r = 0; r < V::kCount; ++r) block[r].store(to + (j + r) * to_row + i);
    }
  }
}

}  // namespace weft::kernels
