#pragma once
/// TileBias: reads the numbers that are added to the scores of a tile, or the mask that hides
/// scores.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "chips/cpu/attention/rows.hpp"

namespace weft::kernels {

/// Reads the bias operand tile by tile, as numbers to be added. A mask is read as 0 and -inf.
template <typename V, typename C>
class TileBias {
 public:
  using Tile = AttentionTile<V, C>;
  static constexpr std::int64_t kLanes = Tile::kLanes;
  static constexpr std::int64_t kKeys = Tile::kKeys;

  TileBias(const AttentionSizes& sizes, const std::byte* operand, ScratchParts& parts)
      : form_(sizes.bias), dtype_(sizes.dtype), operand_(operand) {
    if (form_.kind == BiasKind::none) return;
    rows_ = parts.take<C>((is_of_all_queries() ? 1 : Tile::kQueries) * kKeys);
  }

  /// Begins head number `head`, counted over all batches. read() then reads the bias of this head.
  void begin(std::int64_t head) {
    first_ = head / form_.heads * form_.strides[0] + head % form_.heads * form_.strides[1];
  }

  /// Reads the tile that begins at `query` and `key`. Returns false if the bias hides all scores of
  /// the tile, so that no key of the tile gets a weight.
  bool read(const Tile& tile, std::int64_t query, std::int64_t key) {
    if (form_.kind == BiasKind::none) return true;
    const std::int64_t at = first_ + query * form_.strides[2] + key * form_.strides[3];
    bool weighs = true;
    if (form_.kind == BiasKind::mask) {
      const std::uint8_t* const sees = as<std::uint8_t>(operand_) + at;
      weighs = look_at(tile, sees);
      if (!changes_) return weighs;
      read_rows_of(tile, sees, [](std::uint8_t seen) { return seen != 0 ? C{0} : kHidden; });
    } else {
      visit_elements<C>(dtype_, [&]<typename T>(std::type_identity<T>) {
        weighs = read_rows_of(tile, as<T>(operand_) + at, [](T x) { return C{load(x)}; });
      });
    }
    return weighs;
  }

  /// Adds the tile that read() has read to the scores [keys, queries].
  void add_to(const Tile& tile, C* scores) const {
    if (form_.kind == BiasKind::none || !changes_) return;
    for (std::int64_t v = 0; v < tile.vectors(); ++v) {
      const std::int64_t count = tile.scored(v);
      C* const column = scores + v * kLanes;
      if (is_of_all_queries()) {
        add_row(count, column);
      } else if (form_.kind == BiasKind::mask) {
        add_rows<true>(count, rows_ + v * kLanes * kKeys, column);
      } else {
        add_rows<false>(count, rows_ + v * kLanes * kKeys, column);
      }
    }
  }

 private:
  static constexpr C kHidden = -std::numeric_limits<C>::infinity();

  bool is_of_all_queries() const { return form_.strides[2] == 0; }
  std::int64_t num_rows(const Tile& tile) const { return is_of_all_queries() ? 1 : tile.queries; }

  /// Prefetches the part of a row that the next tile needs. The processor's own prefetcher can't
  /// predict this, because rows are far apart.
  template <typename T>
  static void fetch_next(const T* row) {
    constexpr std::int64_t kBytes = kKeys * static_cast<std::int64_t>(sizeof(T));
    const auto* const next = reinterpret_cast<const std::byte*>(row) + kBytes;
    for (std::int64_t at = 0; at < kBytes; at += 64) __builtin_prefetch(next + at, 0, 2);
  }

  /// Returns whether a mask shows any key of the tile; changes_ tells whether it also hides a key.
  bool look_at(const Tile& tile, const std::uint8_t* sees) {
    const std::int64_t keys = form_.strides[3] == 0 ? 1 : tile.keys;
    std::uint8_t some = 0;
    std::uint8_t all = 1;
    for (std::int64_t r = 0; r < num_rows(tile); ++r, sees += form_.strides[2]) {
      fetch_next(sees);
      for (std::int64_t j = 0; j < keys; ++j) some |= sees[j];
      for (std::int64_t j = 0; j < keys; ++j) all &= sees[j];
    }
    changes_ = some != 0 && all == 0;
    return some != 0;
  }

  /// Reads rows of kKeys numbers. Fills rows after the last query, and numbers after the last key,
  /// with zeros. Returns whether any number for a key isn't -inf.
  template <typename T, typename Number>
  bool read_rows_of(const Tile& tile, const T* from, Number number) {
    bool weighs = false;
    C* to = rows_;
    for (std::int64_t r = 0; r < num_rows(tile); ++r, from += form_.strides[2], to += kKeys) {
      if (form_.strides[3] == 0) {
        std::fill_n(to, tile.keys, number(*from));
      } else {
        fetch_next(from);
        for (std::int64_t j = 0; j < tile.keys; ++j) to[j] = number(from[j]);
      }
      weighs = weighs || std::any_of(to, to + tile.keys, [](C x) { return x != kHidden; });
      std::fill(to + tile.keys, to + kKeys, C{0});
    }
    if (!is_of_all_queries()) std::fill(to, rows_ + Tile::kQueries * kKeys, C{0});
    return weighs;
  }

  /// Adds the row to the scores of the first `count` keys, for each query of a vector.
  void add_row(std::int64_t count, C* column) const {
    for (std::int64_t j = 0; j < count; ++j, column += Tile::kQueries) {
      const V score = V::load(column) + V(rows_[j]);
      (rows_[j] == kHidden ? V(kHidden) : score).store(column);
    }
  }
  /// Adds `rows`, one row for each query of a vector, to the scores of the first `count` keys.
  template <bool is_mask>
  static void add_rows(std::int64_t count, const C* rows, C* column) {
    for (std::int64_t j = 0; j < count; j += kLanes) {
      V block[kLanes];
      for (std::int64_t r = 0; r < kLanes; ++r) block[r] = V::load(rows + r * kKeys + j);
      transpose(block);
      const std::int64_t end = std::min(count - j, kLanes);
      for (std::int64_t r = 0; r < end; ++r) {
        C* const to = column + (j + r) * Tile::kQueries;
        const V score = V::load(to);
        // -inf replaces a hidden score instead of being added, because the score may be NaN.
        const V shown = is_mask ? score : score + block[r];
        where_less(block[r], V(std::numeric_limits<C>::lowest()), block[r], shown).store(to);
      }
    }
  }

  BiasForm form_;
  DType dtype_;
  const std::byte* operand_;
  std::int64_t first_ = 0;  ///< index of the head's first element
  C* rows_ = nullptr;       ///< [kQueries, kKeys], or one row for all queries
  bool changes_ = true;     ///< false if a mask hides no key of the tile
};

}  // namespace weft::kernels
