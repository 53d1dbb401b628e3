#pragma once
/// Runs ops in the order of the reference interpreters. The ops of a loop are repeated as often as
/// its length or test says, and only one of two branches is run.

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
