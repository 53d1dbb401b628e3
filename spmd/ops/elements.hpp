#pragma once
/// Row-major elements in double, for what the rows compute in the reference interpreters.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/spmd/ops/row.hpp>

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

/// elements[where[0]], elements[where[1]], ...
Elements take(const Elements& elements, const std::vector<std::int64_t>& where);
/// to[where[i]] = elements[i].
void put(Elements& to, const std::vector<std::int64_t>& where, const Elements& elements);

/// As the dtype holds it; floating values as they are.
double to_dtype(DType dtype, double x);
/// a + b, max(a, b) or min(a, b); NaN wins in all.
double combine(ReduceKind kind, double a, double b);
/// What leaves every value of the dtype as it is: 0 for add, the smallest for max, the largest for
/// min.
double neutral(ReduceKind kind, DType dtype);

}  // namespace weft
