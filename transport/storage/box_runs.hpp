#pragma once
/// BoxRuns: finds the elements that a stored shard and a box in memory have in common, as runs that
/// are contiguous in both. Checkpoints are written, read and resharded with it.

#include <algorithm>
#include <cstdint>

#include <weft/tensor/type.hpp>

#include "spmd/mesh/box.hpp"

namespace weft {

class BoxRuns {
 public:
  /// `stored` and `placed` are boxes of the same tensor. `stored` is contiguous.
  BoxRuns(const Box& stored, const PlacedBox& placed)
      : num_dims_(stored.dims.size()),
        stored_stride_(stored.dims),
        placed_stride_(stored.dims),
        in_stored_(stored.dims),
        in_placed_(stored.dims),
        size_(stored.dims) {
    for (int d = num_dims_ - 1, inner = 1; d >= 0; --d) {
      stored_stride_[d] = d == num_dims_ - 1 ? 1 : stored_stride_[d + 1] * stored.dims[d + 1];
      placed_stride_[d] = d == num_dims_ - 1 ? 1 : placed_stride_[d + 1] * placed.room[d + 1];
      const auto& box = placed.box;
      const std::int64_t begin = std::max(stored.offsets[d], box.offsets[d]);
      const std::int64_t end =
          std::min(stored.offsets[d] + stored.dims[d], box.offsets[d] + box.dims[d]);
      size_[d] = std::max<std::int64_t>(end - begin, 0);
      in_stored_[d] = begin - stored.offsets[d];
      in_placed_[d] = begin - box.offsets[d];
      if (size_[d] == 0) length_ = 0;
      // A run consists of the innermost dims that both boxes have completely, and the next dim
      // before them.
      if (inner == 1) {
        length_ *= size_[d];
        run_dim_ = d;
        inner = size_[d] == stored.dims[d] && size_[d] == placed.room[d] ? 1 : 0;
      }
    }
  }

  bool empty() const { return length_ == 0; }
  /// Returns whether any common element is in the range [begin, end) of the stored shard.
  bool any(std::int64_t begin, std::int64_t end) const {
    bool found = false;
    visit(begin, end, [&](auto...) { return !(found = true); });
    return found;
  }

  /// Calls `copy(stored, placed, count)` for each run in the range [begin, end) of the stored
  /// shard, in order. `stored` and `placed` are the indices of the run's first element in the
  /// stored shard and in memory.
  template <typename Copy>
  void each(std::int64_t begin, std::int64_t end, Copy copy) const {
    visit(begin, end, [&](std::int64_t stored, std::int64_t placed, std::int64_t count) {
      copy(stored, placed, count);
      return true;
    });
  }

 private:
  /// Calls `copy(stored, placed, count)` for the runs in the range, until `copy` returns false.
  template <typename Copy>
  void visit(std::int64_t begin, std::int64_t end, Copy copy) const {
    Shape row = size_;
    for (int d = 0; d < num_dims_; ++d) row[d] = 0;
    if (empty() || !find_row(begin, row)) return;
    do {
      std::int64_t stored = 0;
      std::int64_t placed = 0;
      for (int d = 0; d < num_dims_; ++d) {
        stored += (in_stored_[d] + row[d]) * stored_stride_[d];
        placed += (in_placed_[d] + row[d]) * placed_stride_[d];
      }
      if (stored >= end) return;
      const std::int64_t from = std::max(stored, begin);
      const std::int64_t to = std::min(stored + length_, end);
      if (from < to && !copy(from, placed + (from - stored), to - from)) return;
    } while (next_row(row, run_dim_ - 1));
  }

  /// Advances `row` by one in dim `dim`. Returns false after the last row.
  bool next_row(Shape& row, int dim) const {
    for (; dim >= 0; --dim) {
      if (++row[dim] < size_[dim]) return true;
      row[dim] = 0;
    }
    return false;
  }

  /// Sets `row` to the first row that doesn't end before this element of the stored shard, or to
  /// the row before it. Returns false if there is no such row.
  bool find_row(std::int64_t element, Shape& row) const {
    for (int d = 0; d < run_dim_; ++d) {
      const std::int64_t at = element / stored_stride_[d] - in_stored_[d];
      element %= stored_stride_[d];
      if (at < 0) return true;  // the later indices of the row remain 0
      if (at >= size_[d]) return next_row(row, d - 1);
      row[d] = at;
    }
    return true;
  }

  int num_dims_;
  int run_dim_ = 0;  // a run contains elements of this dim and all later dims
  std::int64_t length_ = 1;
  Shape stored_stride_;
  Shape placed_stride_;
  Shape in_stored_;  // position of the common elements in the stored shard
  Shape in_placed_;
  Shape size_;  // size of the box of common elements
};

}  // namespace weft
