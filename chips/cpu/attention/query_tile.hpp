#pragma once
/// QueryTile: computes the softmax of a tile of queries, over one tile of keys after another.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "chips/cpu/attention/rows.hpp"

namespace weft::kernels {

/// Returns whether `count` numbers are neither infinite nor NaN.
template <typename V, typename C>
bool are_finite(const C* numbers, std::int64_t count) {
  V rest{};  // the sum of x - x, which is NaN if x is infinite or NaN
  for (std::int64_t at = 0; at < count; at += V::kCount) {
    const V x = V::load(numbers + at);
    rest = rest + (x - x);
  }
  C total = 0;
  for (int i = 0; i < V::kCount; ++i) total += rest.v[i];
  return total == 0;
}

/// A tile of queries, with their softmax over the tiles of keys that were processed so far.
template <typename V, typename C>
class QueryTile {
 public:
  using Tile = AttentionTile<V, C>;
  static constexpr std::int64_t kLanes = Tile::kLanes;
  static constexpr std::int64_t kQueries = Tile::kQueries;

  QueryTile(const AttentionSizes& sizes, ScratchParts& parts)
      : sizes_(sizes),
        tops_(parts.take<C>(kQueries)),
        sums_(parts.take<C>(kQueries)),
        kept_(parts.take<C>(kQueries)) {}

  void begin(std::int64_t first) {
    first_ = first;
    count_ = std::min(kQueries, sizes_.queries - first);
    // The tops begin with a finite number. With -inf, a tile of keys whose scores are all -inf
    // would lead to -inf - -inf, which is NaN.
    std::fill_n(tops_, kQueries, std::numeric_limits<C>::lowest());
    std::fill_n(sums_, kQueries, C{0});
  }

  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; }
  const C* tops() const { return tops_; }
  /// Returns the factor that makes the weights of query i final: 1 / (their sum), or 0 if the bias
  /// hides all keys from the query.
  C share(std::int64_t i) const {
    return sums_[i] == 0 && sizes_.bias.kind != BiasKind::none ? C{0} : 1 / sums_[i];
  }

  /// Calls body(tile, first key of the tile) for the tiles of keys that at least one query sees.
  template <typename Body>
  void for_keys(Body body) const {
    const std::int64_t place = sizes_.first_query + first_;
    const std::int64_t end = sizes_.causal ? std::min(sizes_.keys, place + count_) : sizes_.keys;
    for (std::int64_t j = 0; j < end; j += Tile::kKeys) {
      body(Tile{.queries = count_,
                .keys = std::min(Tile::kKeys, end - j),
                .place = sizes_.causal ? std::min(place - j, Tile::kKeys) : Tile::kKeys},
           j);
    }
  }

  /// Replaces the scores of a tile by e^(score - top), or by 0 for keys that a query doesn't see,
  /// and adds them to the sums. `top` is the query's largest score so far. Returns whether any top
  /// has changed; if so, keep() must rescale the results that were computed with earlier tops.
  bool weigh(const Tile& tile, C* scores) {
    bool changed = false;
    for (std::int64_t v = 0; v < tile.vectors(); ++v) {
      C* const column = scores + v * kLanes;
      const std::int64_t rows = tile.scored(v);
      const V before = V::load(tops_ + v * kLanes);
      const V top = find_top(tile, v, column, before);
      V sum{};
      for (std::int64_t j = 0; j < rows; ++j) {
        const V weight = weight_of(V::load(column + j * kQueries) - top);
        sum = sum + weight;
        weight.store(column + j * kQueries);
      }
      const V kept = weight_of(before - top);
      top.store(tops_ + v * kLanes);
      kept.store(kept_ + v * kLanes);
      fused(V::load(sums_ + v * kLanes), kept, sum).store(sums_ + v * kLanes);
    }
    for (std::int64_t i = 0; i < count_; ++i) changed |= kept_[i] != 1;
    return changed;
  }

  void keep(VectorRows<C> rows) const {
    for (std::int64_t i = 0; i < count_; ++i, rows.data += rows.row) {
      const V kept(kept_[i]);
      for (std::int64_t e = 0; e < rows.row; e += kLanes) {
        (V::load(rows.data + e) * kept).store(rows.data + e);
      }
    }
  }

 private:
  /// Returns the larger of `top` and the largest score, for each query of vector v. Replaces the
  /// scores of keys that a query doesn't see by -inf.
  V find_top(const Tile& tile, std::int64_t v, C* column, V top) const {
    const std::int64_t rows = tile.scored(v);
    const std::int64_t all_see = std::min(rows, tile.seen(v * kLanes));
    for (std::int64_t j = 0; j < all_see; ++j) top = larger(V::load(column + j * kQueries), top);
    const V lanes = V::count_from(static_cast<C>(v * kLanes));
    for (std::int64_t j = all_see; j < rows; ++j) {
      const V sees(static_cast<C>(j - tile.place));
      const V score = where_less(lanes, sees, V(lowest<C>()), V::load(column + j * kQueries));
      score.store(column + j * kQueries);
      top = larger(score, top);
    }
    return top;
  }

  const AttentionSizes& sizes_;
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
  C* tops_;
  C* sums_;
  C* kept_;
};

}  // namespace weft::kernels
