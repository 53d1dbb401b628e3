#pragma once
/// Multiplies a tile of queries by a tile of keys, for attention and its gradient. Scores have the
/// layout [keys, queries], so the softmax of a query is computed lane by lane.

#include <algorithm>
#include <array>
#include <cstdint>

#include <weft/tensor/type.hpp>

#include "chips/cpu/attention/tile_product.hpp"

namespace weft::kernels {

/// The effect of the optional bias operand on scores.
enum class BiasKind : std::uint8_t {
  none,
  added,
  mask,  ///< keys that aren't seen have scores of -inf
};

/// The layout of the bias operand [B,H,S,T]. Each of its dims may also have size 1.
struct BiasForm {
  BiasKind kind = BiasKind::none;
  std::int64_t heads = 1;  ///< H
  /// Distances of adjacent elements along B, H, S and T; 0 for a dim that is broadcast.
  std::array<std::int64_t, 4> strides{};
};
inline BiasForm bias_form_of(const TensorType& type, std::int64_t heads) {
  BiasForm form{type.dtype == DType::pred ? BiasKind::mask : BiasKind::added, heads};
  std::int64_t stride = 1;
  for (int dim = 3; dim >= 0; --dim) {
    if (type.shape[dim] > 1) form.strides[static_cast<std::size_t>(dim)] = stride;
    stride *= type.shape[dim];
  }
  return form;
}

struct AttentionSizes {
  std::int64_t heads, queries, keys, key_size, value_size;
  double scale;
  bool causal;
  std::int64_t first_query;  ///< the first query's position; above 0 if chips have earlier queries
  DType dtype;
  BiasForm bias{};
};

/// A tile of scores for vectors of type V: two vectors of queries by 64 keys.
template <typename V, typename C>
struct AttentionTile {
  static constexpr std::int64_t kLanes = V::kCount;
  static constexpr std::int64_t kQueries = 2 * kLanes;
  static constexpr std::int64_t kKeys = 64;
  static constexpr std::int64_t kBlock = 8;  ///< number of rows that one product computes

  static std::int64_t whole_vectors(std::int64_t size) { return (size + kLanes - 1) / kLanes; }
  static std::int64_t padded(std::int64_t size) { return whole_vectors(size) * kLanes; }
  static std::int64_t tiles(std::int64_t keys) { return (keys + kKeys - 1) / kKeys; }

  std::int64_t queries;
  std::int64_t keys;
  std::int64_t place;  ///< query i sees keys 0 to place + i of the tile

  std::int64_t vectors() const { return whole_vectors(queries); }
  /// Returns how many keys of the tile query i sees.
  std::int64_t seen(std::int64_t i) const {
    return std::clamp<std::int64_t>(place + i + 1, 0, keys);
  }
  /// Returns the number of the first vector of queries with a query that sees key j.
  std::int64_t first_vector(std::int64_t j) const {
    return std::max<std::int64_t>(j - place, 0) / kLanes;
  }
  /// Returns how many keys the queries of vector v see, rounded up to a multiple of kBlock.
  std::int64_t scored(std::int64_t v) const {
    const std::int64_t end = seen(v * kLanes + kLanes - 1) + kBlock - 1;
    return std::min(keys, end / kBlock * kBlock);
  }

  // E is a number or a pair of numbers. The number of pairs is rounded up, and the unused half of
  // the last pair must be 0. The weights of keys that a query doesn't see must be 0 too.

  /// Computes result[keys, queries] = factor * rows[keys, depth] x columns[depth, queries] for the
  /// keys that a query sees, and for some others.
  template <typename E>
  void multiply(LeftMatrix<E> rows, std::int64_t depth, const E* columns, C factor,
                C* result) const {
    for (std::int64_t j = 0; j < keys; j += kBlock) {
      const std::int64_t lane = first_vector(j) * kLanes;
      multiply_tiles<Write::overwrite, V, C, E>(
          std::min(kBlock, keys - j), vectors() - first_vector(j), depth,
          {rows.data + j * rows.row, rows.row, rows.column}, {columns + lane, kQueries},
          {result + j * kQueries + lane, kQueries}, factor);
    }
  }
  /// Computes sums[queries, vectors] += transposed(weights[keys, queries]) x rows[keys, vectors].
  template <typename E>
  void add_to_queries(const E* weights, VectorRows<const E> rows, std::int64_t num_vectors,
                      VectorRows<C> sums) const {
    // All queries of a block are in one vector, so their weights are computed up to the same key.
    constexpr std::int64_t kRows = std::min(kBlock, kLanes);
    for (std::int64_t i = 0; i < queries; i += kRows) {
      const std::int64_t count = std::min(kRows, queries - i);
      multiply_tiles<Write::accumulate, V, C, E>(
          count, num_vectors, depth_of<E>(seen(i + count - 1)), {weights + i, 1, kQueries}, rows,
          {sums.data + i * sums.row, sums.row});
    }
  }
  /// Like add_to_queries(), but skips weights of 0, because keys that aren't seen may be NaN.
  template <typename E>
  void add_seen_to_queries(const E* weights, VectorRows<const E> rows, std::int64_t num_vectors,
                           VectorRows<C> sums) const {
    using X = Lanes<E, static_cast<int>(sizeof(V))>;
    for (std::int64_t i = 0; i < queries; ++i) {
      C* const row = sums.data + i * sums.row;
      for (std::int64_t k = 0; k < depth_of<E>(seen(i)); ++k) {
        const E weight = weights[k * kQueries + i];
        if (is_zero(weight)) continue;
        for (std::int64_t at = 0; at < num_vectors * kLanes; at += kLanes) {
          V sum = V::load(row + at);
          X x = X::load(rows.data + k * rows.row + at);
          hide_unweighed(weight, x);
          add_products(sum, X(weight), x);
          sum.store(row + at);
        }
      }
    }
  }
  /// Computes sums[keys, vectors] += weights[keys, queries] x rows[queries, vectors].
  template <typename E>
  void add_to_keys(const E* weights, VectorRows<const E> rows, std::int64_t num_vectors,
                   VectorRows<C> sums) const {
    constexpr std::int64_t kRow = kQueries / kDepthOf<E>;
    for (std::int64_t j = 0; j < keys; j += kBlock) {
      const std::int64_t lane = first_vector(j) * kLanes;
      const std::int64_t first = lane / kDepthOf<E>;
      multiply_tiles<Write::accumulate, V, C, E>(
          std::min(kBlock, keys - j), num_vectors, depth_of<E>(queries - lane),
          {weights + j * kRow + first, kRow, 1}, {rows.data + first * rows.row, rows.row},
          {sums.data + j * sums.row, sums.row});
    }
  }

 private:
  template <typename E>
  static std::int64_t depth_of(std::int64_t numbers) {
    return (numbers + kDepthOf<E> - 1) / kDepthOf<E>;
  }
};

}  // namespace weft::kernels
