#pragma once
/// Inputs for examples of ops, and tolerances for the results of engines.

#include <span>
#include <vector>

#include "spmd/program/program.hpp"
#include "spmd/reference/interpret.hpp"

namespace weft::testing {

/// Returns inputs whose values every dtype can represent. Floating values are from 0.25 to 2.25, so
/// that every function is defined and smooth. Integers are from 1 to 3, and from 3 to 5 in the
/// first operand, so that they can be indices and divisors and their differences fit u32.
std::vector<Elements> inputs_of(std::span<const TensorType> types);

std::vector<TensorType> input_types(const Program& program);
std::vector<TensorType> output_types(const Program& program);

/// Returns the rounding tolerance of a dtype, relative to the largest element.
double tolerance(DType dtype);
/// Returns the largest rounding tolerance of the program's dtypes.
double tolerance_of(const Program& program);

}  // namespace weft::testing
