#pragma once
/// add_product: a product of small matrices whose sums stay in registers.

#include <cstdint>

#include "actors/device/cpu/attention/lanes.hpp"

namespace weft::kernels {

/// Element (i, k) lies at data[i * row + k * column]. It is spread over a vector.
template <typename C>
struct LeftMatrix {
  const C* data;
  std::int64_t row;
  std::int64_t column;
};

/// Rows of whole vectors, `row` elements apart.
template <typename C>
struct VectorRows {
  C* data;
  std::int64_t row;
};

/// R rows and N vectors of add_product(). An element's sum goes over k in order, whatever R and N.
template <typename V, int R, int N, typename C>
void add_block(std::int64_t depth, LeftMatrix<C> a, VectorRows<const C> b, VectorRows<C> c,
               bool from_zero) {
  V sums[R][N];
  if (!from_zero) {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sums[i][j] = V::load(c.data + i * c.row + j * V::kCount);
    }
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    V x[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) x[j] = V::load(b.data + k * b.row + j * V::kCount);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const V factor(a.data[i * a.row + k * a.column]);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sums[i][j] = fused(factor, x[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) sums[i][j].store(c.data + i * c.row + j * V::kCount);
  }
}

/// Rows in blocks of R, the rest in smaller ones.
template <typename V, int R, int N, typename C>
void add_columns(std::int64_t rows, std::int64_t depth, LeftMatrix<C> a, VectorRows<const C> b,
                 VectorRows<C> c, bool from_zero) {
  while (rows >= R) {
    add_block<V, R, N>(depth, a, b, c, from_zero);
    a.data += R * a.row;
    c.data += R * c.row;
    rows -= R;
  }
  if constexpr (R > 1) add_columns<V, R / 2, N>(rows, depth, a, b, c, from_zero);
}

/// c[rows, vectors] (+)= a[rows, depth] x b[depth, vectors].
template <typename V, typename C>
void add_product(std::int64_t rows, std::int64_t vectors, std::int64_t depth, LeftMatrix<C> a,
                 VectorRows<const C> b, VectorRows<C> c, bool from_zero = false) {
  // Sums, vectors of b and a factor in 32 registers of 64 bytes, or 16.
  constexpr bool kHas32 = sizeof(V) == 64;
  constexpr int kMost = kHas32 ? 4 : 2;
  const auto step = [&]<int kRows, int kVectors>() {
    add_columns<V, kRows, kVectors>(rows, depth, a, b, c, from_zero);
    b.data += kVectors * V::kCount;
    c.data += kVectors * V::kCount;
    vectors -= kVectors;
  };
  while (vectors >= kMost) step.template operator()<4, kMost>();
  if constexpr (kHas32) {
    if (vectors >= 2) step.template operator()<8, 2>();
  }
  if (vectors > 0) step.template operator()<8, 1>();
}

}  // namespace weft::kernels
