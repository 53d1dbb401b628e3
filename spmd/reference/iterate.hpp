#pragma once
/// The order in which the reference interpreters run ops. They repeat the ops of a loop as often as
/// its length or test says, and run only one of two branches.

#include <functional>
#include <vector>

#include "spmd/ops/evaluation.hpp"

namespace weft {

/// A value on every chip, indexed by position.
using ChipElements = std::vector<Elements>;

/// Computes the values of all ops on `chips` chips. `evaluate` makes the value of one op from
/// `values`. It isn't called for `loop`, `stack` and `merge`; for `carry` it is called only before
/// the first iteration.
void run_ops(const Program& program, std::vector<ChipElements>& values, std::size_t chips,
             const std::function<ChipElements(OpId)>& evaluate);

}  // namespace weft
