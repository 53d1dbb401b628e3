#pragma once
/// Converts rows of bf16 to operands of products of pairs. For a product that sums along rows,
/// adjacent numbers of a row are a pair. For a product that sums across rows, two rows are
/// interleaved.

#include <algorithm>

#include "chips/cpu/attention/rows.hpp"

namespace weft::kernels {

#if defined(__x86_64__)

using PairedTile = AttentionTile<SumLanes, float>;

/// Converts [count, size] to [(count + 1) / 2, size] pairs (the VNNI layout of oneDNN), with zeros
/// after the ends of rows and after the last row.
inline void interleave_rows(const std::byte* rows, std::int64_t count, std::int64_t size,
                            VectorRows<Bf16Pair> to) {
  const auto* from = as<std::uint16_t>(rows);
  for (std::int64_t r = 0; r < count; r += 2, from += 2 * size, to.data += to.row) {
    if (r + 1 < count) {
      for (std::int64_t e = 0; e < size; ++e) {
        to.data[e] = from[e] | static_cast<Bf16Pair>(from[size + e]) << 16;
      }
    } else {
      std::copy_n(from, size, to.data);
    }
    std::fill(to.data + size, to.data + to.row, 0);
  }
}

/// Like HeadRows, but for pairs of bf16. left() requires rows of an even size.
class PairedHeadRows {
 public:
  PairedHeadRows(DType, const std::byte* operand, std::int64_t count, std::int64_t size, bool right,
                 ScratchParts& parts)
      : next_(operand), count_(count), size_(size), row_(PairedTile::padded(size)) {
    if (right) pairs_ = parts.take<Bf16Pair>((count + 1) / 2 * row_);
  }

  void next() {
    rows_ = as<Bf16Pair>(next_);
    if (pairs_ != nullptr) interleave_rows(next_, count_, size_, {pairs_, row_});
    next_ += count_ * size_ * 2;
  }
  LeftMatrix<Bf16Pair> left(std::int64_t j) const {
    return {rows_ + j * (size_ / 2), size_ / 2, 1};
  }
  VectorRows<const Bf16Pair> right(std::int64_t j) const { return {pairs_ + j / 2 * row_, row_}; }

 private:
  const std::byte* next_;
  std::int64_t count_;
  std::int64_t size_;
  std::int64_t row_;  ///< number of pairs in an interleaved row
  Bf16Pair* pairs_ = nullptr;
  const Bf16Pair* rows_ = nullptr;
};

/// Like TileRows, but for pairs of bf16. Rows must have an even size.
class PairedTileRows {
 public:
  PairedTileRows(std::int64_t size, bool with_rows, ScratchParts& parts)
      : size_(size),
        plain_row_(PairedTile::padded(size / 2)),
        row_(PairedTile::padded(size)),
        plain_(parts.take<Bf16Pair>(PairedTile::kQueries * plain_row_)),
        columns_(parts.take<Bf16Pair>(PairedTile::kQueries * plain_row_)) {
    if (with_rows) pairs_ = parts.take<Bf16Pair>(PairedTile::kQueries / 2 * row_);
  }

  void read(DType, const std::byte* operand, std::int64_t count) {
    const auto* from = as<Bf16Pair>(operand);
    Bf16Pair* to = plain_;
    for (std::int64_t r = 0; r < count; ++r, from += size_ / 2, to += plain_row_) {
      std::fill(std::copy_n(from, size_ / 2, to), to + plain_row_, 0);
    }
    std::fill(to, plain_ + PairedTile::kQueries * plain_row_, 0);
    transpose<PairLanes>(PairedTile::kQueries, plain_row_, plain_, plain_row_, columns_,
                         PairedTile::kQueries);
    if (pairs_ != nullptr) interleave_rows(operand, count, size_, {pairs_, row_});
  }
  VectorRows<const Bf16Pair> rows() const { return {pairs_, row_}; }
  /// Returns the pairs of the tile as [size / 2, kQueries].
  const Bf16Pair* columns() const { return columns_; }

 private:
  std::int64_t size_;
  std::int64_t plain_row_;
  std::int64_t row_;  ///< number of pairs in an interleaved row
  Bf16Pair* plain_;
  Bf16Pair* columns_;
  Bf16Pair* pairs_ = nullptr;
};

/// Like TileWeights, but rounds the weights to bf16 and pairs them.
class PairedTileWeights {
 public:
  using Tile = PairedTile;

  explicit PairedTileWeights(ScratchParts& parts)
      : along_keys_(parts.take<Bf16Pair>(Tile::kKeys / 2 * Tile::kQueries)),
        along_queries_(parts.take<Bf16Pair>(Tile::kKeys * Tile::kQueries / 2)) {}

  const Bf16Pair* along_keys(const Tile& tile, const float* weights) const {
    for (std::int64_t v = 0; v < tile.vectors(); ++v) {
      const float* from = weights + v * Tile::kLanes;
      Bf16Pair* to = along_keys_ + v * Tile::kLanes;
      const std::int64_t rows = tile.scored(v);
      for (std::int64_t j = 0; j < rows; j += 2, from += 2 * Tile::kQueries, to += Tile::kQueries) {
        SumLanes second{};
        if (j + 1 < rows) second = SumLanes::load(from + Tile::kQueries);
        PairLanes pairs;
        pair_rows(SumLanes::load(from), second, pairs);
        pairs.store(to);
      }
    }
    return along_keys_;
  }
  const Bf16Pair* along_queries(const Tile& tile, const float* weights) const {
    const std::int64_t rows = tile.scored(tile.vectors() - 1);
    for (std::int64_t j = 0; j < rows; ++j) {
      const float* const from = weights + j * Tile::kQueries;
      PairLanes pairs;
      pair_lanes(SumLanes::load(from), SumLanes::load(from + Tile::kLanes), pairs);
      Bf16Pair* const to = along_queries_ + j * Tile::kQueries / 2;
      pairs.store(to);
      // If the number of queries is odd, the second half of the last pair belongs to no query. It
      // is cleared, because it may be NaN if a key is NaN.
      if (tile.queries % 2 != 0) to[tile.queries / 2] &= 0xffffU;
    }
    return along_queries_;
  }

 private:
  Bf16Pair* along_keys_;
  Bf16Pair* along_queries_;
};

#endif

}  // namespace weft::kernels
