#pragma once
/// Differentiates a global program in reverse mode: appends the ops that compute the gradient.

#include <functional>
#include <span>
#include <vector>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"

namespace weft {

/// Ops [begin, end) that the backward pass computes again from the values that enter the region
/// (JAX's checkpoint). Only the results in `saved`, sorted by id, are stored.
struct RematRegion {
  OpId begin = 0;
  OpId end = 0;
  bool save_dots = false;  ///< keeps the results of dot_general and convolution
  std::vector<ValueId> saved = {};
};

/// A function that appends ops for the cotangents of a custom_call's operands, given the cotangent
/// of its result. It returns kNoId for an operand without a cotangent.
using CustomVjpRule = std::function<std::vector<ValueId>(const ForwardOp& op, ValueId cotangent)>;

/// Stacks values that the unfinished loop computes in each iteration: its carries, and its floating
/// values. The loop's gradient reads some of these stacks; later passes drop the others. Must be
/// called before the loop's nexts are appended.
void stack_residuals(Builder& builder, ValueId loop);

/// Appends ops that compute d loss / d wrt[i] and returns their values, one for each wrt and with
/// its type. `loss` is a floating scalar. Walks backward once and adds the cotangents of a value in
/// op order. If the loss doesn't depend on a wrt, the wrt's gradient is zeros and its entry in
/// `is_used` is false; `is_used` may be null. New ops have the locations of the ops that they
/// differentiate. The `regions` are in order and don't overlap; they are recomputed when the walk
/// reaches them. The gradient of a loop is a loop in the other direction, which reads the stacks of
/// stack_residuals() and computes the ops of regions in the loop again. `custom` makes the
/// cotangents of custom_calls. Throws invalid_argument, with the type and the location, if the loss
/// isn't a floating scalar or a wrt isn't floating.
std::vector<ValueId> grad(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                          std::span<const RematRegion> regions = {},
                          const CustomVjpRule& custom = {}, std::vector<bool>* is_used = nullptr);

}  // namespace weft
