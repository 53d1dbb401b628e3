#pragma once
/// multiply_tiles(): multiplies small matrices, with the sums in registers.

#include <cstdint>

#include "chips/cpu/attention/pairs.hpp"

namespace weft::kernels {

/// A left operand. Element (i, k) is data[i * row + k * column], and is broadcast to a vector.
template <typename E>
struct LeftMatrix {
  const E* data;
  std::int64_t row;
  std::int64_t column;
};

/// Rows, each of a whole number of vectors. Adjacent rows are `row` elements apart.
template <typename C>
struct VectorRows {
  C* data;
  std::int64_t row;
};

/// Says how multiply_tiles() writes the product c.
enum class Write : std::uint8_t {
  overwrite,   ///< c = factor * a x b
  accumulate,  ///< c += a x b, without a factor
};

/// Computes R rows and N vectors of the result of multiply_tiles(). The products of an element are
/// summed in the order of k, so its bits don't depend on R and N.
template <Write write, typename V, int R, int N, typename C, typename E>
void multiply_block(std::int64_t depth, LeftMatrix<E> a, VectorRows<const E> b, VectorRows<C> c,
                    C factor) {
  using X = Lanes<E, static_cast<int>(sizeof(V))>;
  V sums[R][N];
  if constexpr (write == Write::accumulate) {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sums[i][j] = V::load(c.data + i * c.row + j * V::kCount);
    }
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    X x[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) x[j] = X::load(b.data + k * b.row + j * X::kCount);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const X element(a.data[i * a.row + k * a.column]);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) add_products(sums[i][j], element, x[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      if constexpr (write == Write::overwrite) sums[i][j] = sums[i][j] * V(factor);
      sums[i][j].store(c.data + i * c.row + j * V::kCount);
    }
  }
}

/// Computes N vectors of each row. Rows are computed in blocks of R, and remaining rows in smaller
/// blocks.
template <Write write, typename V, int R, int N, typename C, typename E>
void multiply_columns(std::int64_t rows, std::int64_t depth, LeftMatrix<E> a, VectorRows<const E> b,
                      VectorRows<C> c, C factor) {
  while (rows >= R) {
    multiply_block<write, V, R, N>(depth, a, b, c, factor);
    a.data += R * a.row;
    c.data += R * c.row;
    rows -= R;
  }
  if constexpr (R > 1) multiply_columns<write, V, R / 2, N>(rows, depth, a, b, c, factor);
}

/// Computes c[rows, vectors] = a[rows, depth] x b[depth, vectors], written as `write` says.
/// Elements of a and b may be pairs.
template <Write write, typename V, typename C, typename E>
void multiply_tiles(std::int64_t rows, std::int64_t vectors, std::int64_t depth, LeftMatrix<E> a,
                    VectorRows<const E> b, VectorRows<C> c, C factor = 1) {
  // The sums, the vectors of b and one element of a must fit in the registers: 32 registers for
  // vectors of 64 bytes, otherwise 16.
  constexpr bool kHas32 = sizeof(V) == 64;
  constexpr int kMost = kHas32 ? 4 : 2;
  const auto step = [&]<int kRows, int kVectors>() {
    multiply_columns<write, V, kRows, kVectors>(rows, depth, a, b, c, factor);
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
