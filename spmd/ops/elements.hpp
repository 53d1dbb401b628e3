#pragma once
/// Row-major elements as doubles, for the rows' value functions in the reference interpreters.

#include <cstdint>
#include <span>
#include <vector>

#include "spmd/ops/row.hpp"
#include "spmd/program/strides.hpp"

namespace weft {

/// elements[where[0]], elements[where[1]], ...
Elements take(const Elements& elements, const std::vector<std::int64_t>& where);
/// to[where[i]] = elements[i].
void put(Elements& to, const std::vector<std::int64_t>& where, const Elements& elements);

/// x as an integer or pred dtype stores it; x itself for floating dtypes.
double to_dtype(DType dtype, double x);
/// An integer as its dtype stores it after arithmetic that wraps around, where x and the dtype's
/// numbers are exact as doubles; x itself for others.
double wrapped(DType dtype, double x);
/// a + b, max(a, b) or min(a, b); NaN wins in all.
double combine(ReduceKind kind, double a, double b);
/// Whether `a direction b` holds; a NaN is unequal to all, and neither less nor greater.
bool holds(CompareDirection direction, double a, double b);
/// The neutral element of a reduction: 0 for add, the dtype's smallest value for max, its largest
/// for min.
double neutral(ReduceKind kind, DType dtype);

}  // namespace weft
