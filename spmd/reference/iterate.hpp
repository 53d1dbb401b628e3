#pragma once
/// The order in which the reference interpreters run ops: a loop's as often as its length or test
/// says, and those of one of two branches.

#include <functional>
#include <vector>

#include "spmd/ops/evaluation.hpp"

namespace weft {

/// A value on every chip, by position.
using ChipElements = std::vector<Elements>;

/// Sets the values of all ops on so many chips. `evaluate` makes the value of one op from `values`;
/// it isn't asked for `loop`, `stack` and `merge`, and for `carry` only before the first iteration.
void run_ops(const Program& program, std::vector<ChipElements>& values, std::size_t chips,
             const std::function<ChipElements(OpId)>& evaluate);

}  // namespace weft
