#pragma once
/// Softmax for the softmax and attention ops, both as primitives and as values.

#include <span>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"

namespace weft {

/// Appends a softmax over the last dim.
ValueId softmax_as_primitives(Builder& builder, ValueId x);
/// Appends y (g - sum of g y): the cotangent of x, from the result y and its cotangent g.
ValueId softmax_grad_as_primitives(Builder& builder, ValueId y, ValueId g);

/// Returns the softmax of one row.
Elements softmax_of(std::span<const double> x);
Elements softmax_grad_of(std::span<const double> y, std::span<const double> g);

}  // namespace weft
