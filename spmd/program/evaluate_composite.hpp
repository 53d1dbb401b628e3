#pragma once
/// The composite ops on row-major elements in double, by their definitions and not by their
/// decompositions, so that the one checks the other.

#include <cstdint>

#include <weft/spmd/program/evaluate.hpp>

namespace weft {

/// softmax .. cross_entropy_grad. `first_query`: the number of an attention's query 0; atoms are
/// not looked at.
Elements evaluate_composite(const Program& program, OpId op,
                            std::span<const Elements* const> operands,
                            std::int64_t first_query = 0);

}  // namespace weft
