#pragma once
/// The ops that slide a window, on row-major elements in double. For evaluate.cpp.

#include <weft/spmd/program/evaluate.hpp>

namespace weft {

/// convolution, reduce_window, select_and_scatter.
Elements evaluate_window(const Program& program, OpId op,
                         std::span<const Elements* const> operands);

}  // namespace weft
