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

/// a + b, max(a, b) or min(a, b); NaN wins in all.
double combine(ReduceKind kind, double a, double b);

/// The result of an op that needs no other chip; iota's atoms are not looked at. `operands` in the
/// op's order.
Elements evaluate(const Program& program, OpId op, std::span<const Elements* const> operands);

}  // namespace weft
