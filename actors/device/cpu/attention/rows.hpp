#pragma once
/// Rows of attention's operands and results, on the way to and from tiles.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "actors/device/cpu/attention/tiles.hpp"
#include "actors/device/cpu/loops/element.hpp"

namespace weft::kernels {

/// Gives out 64-byte aligned parts of a kernel's scratch memory. From a null pointer it counts.
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

/// Calls visit(std::type_identity<T>{}) with the type of elements that are computed in C.
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

/// Rows of `size` elements, times `factor`, with zeros behind them.
template <typename C>
void read_rows(DType dtype, const std::byte* rows, std::int64_t count, std::int64_t size, C factor,
               VectorRows<C> to) {
  visit_elements<C>(dtype, [&]<typename T>(std::type_identity<T>) {
    const T* from = as<T>(rows);
    for (std::int64_t r = 0; r < count; ++r, from += size, to.data += to.row) {
      for (std::int64_t e = 0; e < size; ++e) to.data[e] = load(from[e]) * factor;
      for (std::int64_t e = size; e < to.row; ++e) to.data[e] = C{0};
    }
  });
}
/// The reverse. `factor(r)` is that of row r.
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

/// The rows of an operand as C: they themselves, or a copy for each head.
template <typename V, typename C>
class HeadRows {
 public:
  /// `whole`: each row ends with a whole vector.
  HeadRows(DType dtype, const std::byte* operand, std::int64_t count, std::int64_t size, bool whole,
           ScratchParts& parts)
      : dtype_(dtype),
        next_(operand),
        count_(count),
        size_(size),
        row_(whole ? AttentionTile<V, C>::padded(size) : size) {
    if (is_half(dtype) || row_ != size) copy_ = parts.take<C>(count * row_);
  }

  /// Of the next head.
  VectorRows<const C> take() {
    const std::byte* const rows = next_;
    next_ += count_ * size_ * static_cast<std::int64_t>(byte_size(dtype_));
    if (copy_ == nullptr) return {as<C>(rows), row_};
    read_rows(dtype_, rows, count_, size_, C{1}, VectorRows<C>{copy_, row_});
    return {copy_, row_};
  }

 private:
  DType dtype_;
  const std::byte* next_;
  std::int64_t count_;
  std::int64_t size_;
  std::int64_t row_;
  C* copy_ = nullptr;
};

/// A tile of rows of queries, as rows and as columns.
template <typename V, typename C>
class TileRows {
 public:
  using Tile = AttentionTile<V, C>;

  TileRows(std::int64_t size, ScratchParts& parts)
      : size_(size),
        row_(Tile::padded(size)),
        rows_(parts.take<C>(Tile::kQueries * row_)),
        columns_(parts.take<C>(Tile::kQueries * row_)) {}

  /// `operand`: its first row. Columns of further queries are zeros.
  void read(DType dtype, const std::byte* operand, std::int64_t count, C factor) {
    read_rows(dtype, operand, count, size_, factor, VectorRows<C>{rows_, row_});
    std::fill(rows_ + count * row_, rows_ + Tile::kQueries * row_, C{0});
    for (std::int64_t i = 0; i < Tile::kQueries; i += Tile::kLanes) {
      for (std::int64_t e = 0; e < row_; e += Tile::kLanes) transpose_block(i, e);
    }
  }
  VectorRows<const C> rows() const { return {rows_, row_}; }
  /// [size, kQueries].
  const C* columns() const { return columns_; }

 private:
  void transpose_block(std::int64_t i, std::int64_t e) const {
    V block[Tile::kLanes];
    for (std::int64_t r = 0; r < Tile::kLanes; ++r) block[r] = V::load(rows_ + (i + r) * row_ + e);
    transpose(block);
    for (std::int64_t r = 0; r < Tile::kLanes; ++r) {
      block[r].store(columns_ + (e + r) * Tile::kQueries + i);
    }
  }

  std::int64_t size_;
  std::int64_t row_;
  C* rows_;
  C* columns_;
};

}  // namespace weft::kernels
