#pragma once
/// PlainProducts and PairedProducts: two ways to multiply. Each defines the types to which
/// attention converts operands: Head for keys and values of a head, Rows for a tile of queries,
/// results or cotangents, and Weights for weights computed between two products (rows.hpp).

#include "chips/cpu/attention/paired_rows.hpp"
#include "chips/cpu/attention/rows.hpp"

namespace weft::kernels {

/// Multiplies numbers one by one, in the type of the sums.
template <typename VectorType, typename NumberType>
struct PlainProducts {
  using V = VectorType;  ///< vector of sums
  using C = NumberType;
  using E = C;  ///< elements of operands
  using X = V;  ///< vector of elements
  using Head = HeadRows<V, C>;
  using Rows = TileRows<V, C>;
  using Weights = TileWeights<V, C>;
};

#if defined(__x86_64__)
/// Multiplies numbers of bf16, two at a time.
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
