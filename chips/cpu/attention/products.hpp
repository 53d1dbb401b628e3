#pragma once
/// How attention multiplies: the types that its operands go through on the way to products.
/// HeadRows are keys and values of a head, TileRows a tile of queries, results or cotangents, and
/// TileWeights what is computed between two products (rows.hpp).

#include "chips/cpu/attention/paired_rows.hpp"
#include "chips/cpu/attention/rows.hpp"

namespace weft::kernels {

/// Numbers one by one, in the type that sums have.
template <typename VectorType, typename NumberType>
struct PlainProducts {
  using V = VectorType;  ///< of sums
  using C = NumberType;
  using E = C;  ///< elements of operands
  using X = V;  ///< a vector of them
  using Head = HeadRows<V, C>;
  using Rows = TileRows<V, C>;
  using Weights = TileWeights<V, C>;
};

#if defined(__x86_64__)
/// Numbers of bf16, two at a time.
struct PairedProducts {
  using V = SumLanes;
  using C = float;
  using E = Bf16Pair;
  using X = PairLanes;
  using Head = PairedHeadRows;
  using Rows = PairedTileRows;
  using Weights = PairedTileWeights;
};
#endif

}  // namespace weft::kernels
