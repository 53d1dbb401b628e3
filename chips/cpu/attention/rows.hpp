#pragma once
/// Converts rows of attention's operands to tiles, and rows of tiles to results.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "chips/cpu/attention/tiles.hpp"
#include "chips/cpu/loops/element.hpp"

namespace weft::kernels {

/// Hands out 64-byte aligned parts of a kernel's scratch memory. If constructed with a null
/// pointer, it only counts bytes.
class ScratchParts {
 public:
  explicit ScratchParts(std::byte* scratch) : next_(reinterpret_cast<std::uintptr_t>(scratch)) {}

  template <typename C>
  C* take(std::int64_t count) {
    const std::uintptr_t part = next_;
    next_ += (static_cast<std::size_t>(count) * sizeof(C) + 63) / 64 * 64;
    return reinterpret_cast<C*>(part);
  }
  std::uintptr_t next() const { return next_; }

 private:
  std::uintptr_t next_;
};

/// Calls visit(std::type_identity<T>{}), where T is the element type of the dtype, which must be
/// computed in C.
template <typename C, typename Visit>
void visit_elements(DType dtype, Visit visit) {
  if constexpr (std::is_same_v<C, double>) {
    visit(std::type_identity<double>{});
  } else {
    switch (dtype) {
      case DType::bf16: return visit(std::type_identity<Bf16>{});
      case DType::f16: return visit(std::type_identity<F16>{});
      default: return visit(std::type_identity<float>{});
    }
  }
}

/// Reads `count` rows of `size` elements, and sets the rest of each row of `to` to zero.
template <typename C>
void read_rows(DType dtype, const std::byte* rows, std::int64_t count, std::int64_t size,
               VectorRows<C> to) {
  visit_elements<C>(dtype, [&]<typename T>(std::type_identity<T>) {
    const T* from = as<T>(rows);
    for (std::int64_t r = 0; r < count; ++r, from += size, to.data += to.row) {
      for (std::int64_t e = 0; e < size; ++e) to.data[e] = load(from[e]);
      for (std::int64_t e = size; e < to.row; ++e) to.data[e] = C{0};
    }
  });
}
/// Writes `count` rows. Multiplies row r by `factor(r)`.
template <typename C, typename Factor>
void write_rows(DType dtype, VectorRows<const C> from, std::int64_t count, std::int64_t size,
                Factor factor, std::byte* rows) {
  visit_elements<C>(dtype, [&]<typename T>(std::type_identity<T>) {
    T* to = as<T>(rows);
    for (std::int64_t r = 0; r < count; ++r, from.data += from.row, to += size) {
      const C times = factor(r);
      for (std::int64_t e = 0; e < size; ++e) to[e] = store<T>(from.data[e] * times);
    }
  });
}

/// The rows of one head of an operand, as numbers of type C: either in the operand itself, or
/// copied.
template <typename V, typename C>
class HeadRows {
 public:
  /// right() may be called only if `right` is true.
  HeadRows(DType dtype, const std::byte* operand, std::int64_t count, std::int64_t size, bool right,
           ScratchParts& parts)
      : dtype_(dtype),
        next_(operand),
        count_(count),
        size_(size),
        row_(right ? AttentionTile<V, C>::padded(size) : size) {
    if (is_half(dtype) || row_ != size) copy_ = parts.take<C>(count * row_);
  }

  /// Moves to the next head.
  void next() {
    rows_ = copy_ == nullptr ? as<C>(next_) : copy_;
    if (copy_ != nullptr) read_rows(dtype_, next_, count_, size_, VectorRows<C>{copy_, row_});
    next_ += count_ * size_ * static_cast<std::int64_t>(byte_size(dtype_));
  }
  /// Return the rows from j on, where a tile begins: left() as the left operand of a product that
  /// sums along rows, right() as the right operand of a product that sums across rows.
  LeftMatrix<C> left(std::int64_t j) const { return {rows_ + j * row_, row_, 1}; }
  VectorRows<const C> right(std::int64_t j) const { return {rows_ + j * row_, row_}; }

 private:
  DType dtype_;
  const std::byte* next_;
  std::int64_t count_;
  std::int64_t size_;
  std::int64_t row_;
  C* copy_ = nullptr;
  const C* rows_ = nullptr;
};

/// A tile of rows, one row per query, stored both as rows and as columns.
template <typename V, typename C>
class TileRows {
 public:
  using Tile = AttentionTile<V, C>;

  /// rows() may be called only if `with_rows` is true.
  TileRows(std::int64_t size, [[maybe_unused]] bool with_rows, ScratchParts& parts)
      : size_(size),
        row_(Tile::padded(size)),
        rows_(parts.take<C>(Tile::kQueries * row_)),
        columns_(parts.take<C>(Tile::kQueries * row_)) {}

  /// Reads `count` rows from `operand`, and fills the other rows of the tile with zeros.
  void read(DType dtype, const std::byte* operand, std::int64_t count) {
    read_rows(dtype, operand, count, size_, VectorRows<C>{rows_, row_});
    std::fill(rows_ + count * row_, rows_ + Tile::kQueries * row_, C{0});
    transpose<V>(Tile::kQueries, row_, rows_, row_, columns_, Tile::kQueries);
  }
  VectorRows<const C> rows() const { return {rows_, row_}; }
  /// Returns the transposed tile [size, kQueries].
  const C* columns() const { return columns_; }

 private:
  std::int64_t size_;
  std::int64_t row_;
  C* rows_;
  C* columns_;
};

/// Provides the weights of a tile as operands of a product along keys or along queries. A returned
/// pointer is valid until the function is called again.
template <typename V, typename C>
struct TileWeights {
  explicit TileWeights(ScratchParts&) {}
  const C* along_keys(const AttentionTile<V, C>&, const C* weights) const { return weights; }
  const C* along_queries(const AttentionTile<V, C>&, const C* weights) const { return weights; }
};

}  // namespace weft::kernels
