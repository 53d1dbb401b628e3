#pragma once
/// Operates on row-major elements as doubles, for the value functions of the rows of ops.

#include <cstdint>
#include <span>
#include <vector>

#include "spmd/ops/row.hpp"
#include "spmd/program/strides.hpp"

namespace weft {

/// Returns elements[where[0]], elements[where[1]], ...
Elements take(const Elements& elements, const std::vector<std::int64_t>& where);
/// Sets to[where[i]] = elements[i].
void put(Elements& to, const std::vector<std::int64_t>& where, const Elements& elements);

/// Returns x as the dtype stores it, if that is an integer dtype or pred. Otherwise returns x
/// itself.
double to_dtype(DType dtype, double x);
/// Returns an integer as its dtype stores it after arithmetic that wraps around, if x and the
/// dtype's numbers are exact as doubles. Returns x itself for other dtypes.
double wrapped(DType dtype, double x);
/// Returns a + b, max(a, b) or min(a, b). If either is NaN, the result is NaN.
double combine(ReduceKind kind, double a, double b);
/// Returns whether `a direction b` holds. A NaN is unequal to every number, and neither less nor
/// greater.
bool holds(CompareDirection direction, double a, double b);
/// Returns the neutral element of a reduction: 0 for add, the dtype's smallest value for max, and
/// its largest value for min.
double neutral(ReduceKind kind, DType dtype);

}  // namespace weft
