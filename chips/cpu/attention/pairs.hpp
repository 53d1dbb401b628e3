#pragma once
/// Pairs of bf16 numbers. One instruction of AVX-512 BF16 adds both products of two pairs to a sum
/// in f32. The functions declared here may be called only in functions compiled for AVX-512 BF16.
/// They take vectors by reference, because the calling convention for vectors of 64 bytes depends
/// on the target (-Wpsabi).

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <type_traits>

#include "chips/cpu/attention/lanes.hpp"

namespace weft::kernels {

/// Two adjacent numbers along the depth of a product. The first number is in the lower half of the
/// word.
using Bf16Pair = std::uint32_t;
using PairLanes = Lanes<Bf16Pair, 64>;
using SumLanes = Lanes<float, 64>;

/// The number of values along the depth of a product that are packed into one element E.
template <typename E>
inline constexpr std::int64_t kDepthOf = std::is_same_v<E, Bf16Pair> ? 2 : 1;

/// Returns whether the element is 0. For a pair, both halves must be 0.
template <typename E>
bool is_zero(E element) {
  if constexpr (std::is_same_v<E, Bf16Pair>) return (element & 0x7fff7fffU) == 0;
  return element == 0;
}
/// If one half of the weight is 0, clears the same half of each element of `rows`. (If both halves
/// are 0, the caller skips the product.)
template <typename C, int kBytes>
void hide_unweighed(C, Lanes<C, kBytes>&) {}
inline void hide_unweighed(Bf16Pair weight, PairLanes& rows) {
  rows.v &=
      ((weight & 0x7fffU) != 0 ? 0xffffU : 0U) | ((weight & 0x7fff0000U) != 0 ? 0xffff0000U : 0U);
}

/// Computes sum += a * b.
template <typename C, int kBytes>
void add_products(Lanes<C, kBytes>& sum, const Lanes<C, kBytes>& a, const Lanes<C, kBytes>& b) {
  sum = fused(a, b, sum);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bf16")]] inline void add_products(SumLanes& sum, const PairLanes& a,
                                                               const PairLanes& b) {
  sum.v = _mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v));
}

/// Rounds the lanes of both vectors to bf16, and makes pairs of two adjacent lanes. The pairs of
/// `first` come first, followed by the pairs of `second`.
[[gnu::target("avx512f,avx512bf16")]] inline void pair_lanes(const SumLanes& first,
                                                             const SumLanes& second,
                                                             PairLanes& pairs) {
  pairs.v = reinterpret_cast<PairLanes::Vector>(_mm512_cvtne2ps_pbh(second.v, first.v));
}

/// Rounds the lanes of both vectors to bf16. Pair i has lane i of `first` in its lower half and
/// lane i of `second` in its upper half.
[[gnu::target("avx512f,avx512bw,avx512bf16")]] inline void pair_rows(const SumLanes& first,
                                                                     const SumLanes& second,
                                                                     PairLanes& pairs) {
  PairLanes places;  // numbers of 16-bit lanes: i, then 16 + i
  for (std::uint32_t i = 0; i < 16; ++i) places.v[i] = i | (16 + i) << 16;
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.v, first.v));
  pairs.v = reinterpret_cast<PairLanes::Vector>(
      _mm512_permutexvar_epi16(reinterpret_cast<__m512i>(places.v), both));
}
#endif

}  // namespace weft::kernels
