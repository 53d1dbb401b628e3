#pragma once
/// One op on row-major elements in double: what `interpret` and `simulate` are made of.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/spmd/program/interpret.hpp>

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

/// elements[where[0]], elements[where[1]], ...
Elements take(const Elements& elements, const std::vector<std::int64_t>& where);

/// a + b, max(a, b) or min(a, b); NaN wins in all.
double combine(ReduceKind kind, double a, double b);

/// What leaves every value of the dtype as it is: 0 for add, the smallest for max, the largest for
/// min.
double neutral(ReduceKind kind, DType dtype);

/// The result of an op that needs no other chip, where position_atoms (infer.hpp) are none: they
/// are not looked at. `operands` in the op's order.
Elements evaluate(const Program& program, OpId op, std::span<const Elements* const> operands);

}  // namespace weft
