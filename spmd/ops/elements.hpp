#pragma once
/// Operations on row-major elements, as doubles, for the functions that compute the values of ops.

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
/// Returns x wrapped around as in the arithmetic of an integer dtype of up to 32 bits, if |x| <
/// 2^53. For other dtypes and numbers, returns x itself.
double wrapped(DType dtype, double x);
/// Returns a + b, max(a, b) or min(a, b). If either is NaN, the result is NaN.
double combine(ReduceKind kind, double a, double b);
/// Returns whether a compares with b as `direction` says. A NaN is unequal to every number, and
/// neither less nor greater.
bool holds(CompareDirection direction, double a, double b);
/// Returns the neutral element of a reduction: 0 for add, the dtype's smallest value for max, and
/// its largest value for min.
double neutral(ReduceKind kind, DType dtype);

}  // namespace weft
