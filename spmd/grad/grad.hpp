#pragma once
/// Reverse-mode differentiation as a trace transform on the global program.

#include <functional>
#include <span>
#include <vector>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"

namespace weft {

/// Ops [begin, end) that the backward pass computes again (JAX's checkpoint) from the values that
/// enter the region. The results in `saved`, ascending, are kept instead.
struct RematRegion {
  OpId begin = 0;
  OpId end = 0;
  bool save_dots = false;  ///< keeps the results of dot_general and convolution
  std::vector<ValueId> saved = {};
};

/// Appends ops for the cotangents of a custom_call's operands, given its result's; kNoId for none.
using CustomVjpRule = std::function<std::vector<ValueId>(const ForwardOp& op, ValueId cotangent)>;

/// Stacks what the loop that is being made computes in each iteration: its carries, and floating
/// values. The loop's gradient reads some of these stacks; the others are dropped, as nobody reads
/// them. To be called before the loop's nexts.
void stack_residuals(Builder& builder, ValueId loop);

/// Appends ops that compute d loss / d wrt[i] and returns their values (one per wrt, of its type).
/// `loss` is a floating scalar. Walks backward once and adds the cotangents of a value in op order.
/// A wrt that the loss doesn't depend on gets zeros, and false in `is_used` (by wrt; may be null).
/// New ops carry the location of the op they come
/// from. The `regions`, in order and not overlapping, are recomputed when the walk reaches them.
/// The gradient of a loop is a loop in the other direction, which reads what stack_residuals() has
/// stacked; ops of regions in the loop are computed again in it.
/// `custom` makes the cotangents of custom_calls. Throws invalid_argument for a loss that isn't a
/// floating scalar or a wrt that isn't floating, naming its type and location.
std::vector<ValueId> grad(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                          std::span<const RematRegion> regions = {},
                          const CustomVjpRule& custom = {}, std::vector<bool>* is_used = nullptr);

}  // namespace weft
