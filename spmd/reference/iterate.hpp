#pragma once
/// Runs ops for the reference interpreters: repeats the ops of a loop as often as its length or
/// test requires, and runs only one of two branches.

#include <functional>
#include <vector>

#include "spmd/ops/evaluation.hpp"

namespace weft {

/// A value on every chip, indexed by position.
using ChipElements = std::vector<Elements>;

/// Computes the values of all ops on `chips` chips. `evaluate` computes the value of one op from
/// `values`. It isn't called for the ops `loop`, `stack` and `merge`, and for a `carry` only before
/// the first iteration.
void run_ops(const Program& program, std::vector<ChipElements>& values, std::size_t chips,
             const std::function<ChipElements(OpId)>& evaluate);

}  // namespace weft
