#pragma once
/// Computes the positions of elements in row-major arrays.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

namespace weft {

/// The distance in elements between neighbors along each dim; unused entries are 0.
using Strides = std::array<std::int64_t, kDimCountMax>;
/// Returns the strides of a row-major array of this shape.
Strides dense_strides(const Shape& shape);
/// Returns the same strides as dense_strides(), as a list with one number for each dim.
std::vector<std::int64_t> row_major_strides(const Shape& shape);

/// Returns sum(index[d] * strides[d]) for every index below `sizes`, in row-major order.
std::vector<std::int64_t> offsets(std::span<const std::int64_t> sizes,
                                  std::span<const std::int64_t> strides);

/// Returns the offsets, in a row-major array of shape `whole`, of the elements of a part of shape
/// `shape`. Along each dim, element i of the part is at start + i * stride.
std::vector<std::int64_t> places(const Shape& whole, const Shape& shape,
                                 std::span<const std::int64_t> start,
                                 std::span<const std::int64_t> stride);
/// Returns the offsets, in a row-major array of shape `whole`, of the elements of a box of shape
/// `part` whose first element is at the index `at`.
std::vector<std::int64_t> box(const Shape& whole, const Shape& part,
                              std::span<const std::int64_t> at);
/// Returns the offsets of the elements of part `i` when `dim` is divided into `parts` equal parts.
std::vector<std::int64_t> part_of(const Shape& whole, int dim, std::int64_t i, std::int64_t parts);

}  // namespace weft
