#pragma once
/// Where elements lie in row-major arrays.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/type.hpp>

namespace weft {

/// Distance in elements between neighbours along each dim.
std::vector<std::int64_t> row_major_strides(const Shape& shape);

/// sum(index[d] * strides[d]) for every index below `sizes`, in row-major order.
std::vector<std::int64_t> offsets(std::span<const std::int64_t> sizes,
                                  std::span<const std::int64_t> strides);

/// Of the elements of `shape` at start + i * stride in each dim, within a row-major array of
/// `whole`.
std::vector<std::int64_t> places(const Shape& whole, const Shape& shape,
                                 std::span<const std::int64_t> start,
                                 std::span<const std::int64_t> stride);
/// The same, of neighbours.
std::vector<std::int64_t> box(const Shape& whole, const Shape& part,
                              std::span<const std::int64_t> at);
/// Of part `i` of `parts` equal ones along `dim`.
std::vector<std::int64_t> part_of(const Shape& whole, int dim, std::int64_t i, std::int64_t parts);

}  // namespace weft
