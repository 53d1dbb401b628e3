#pragma once
/// Row-major elements in double, for what the rows compute in the reference interpreters.

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

/// As the dtype holds it; floating values as they are.
double to_dtype(DType dtype, double x);
/// a + b, max(a, b) or min(a, b); NaN wins in all.
double combine(ReduceKind kind, double a, double b);
/// What leaves every value of the dtype as it is: 0 for add, the smallest for max, the largest for
/// min.
double neutral(ReduceKind kind, DType dtype);

}  // namespace weft
