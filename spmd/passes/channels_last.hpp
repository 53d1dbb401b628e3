#pragma once
/// Layouts of pictures: which values of a chip's program have their features in the last dim.

#include <cstdint>
#include <optional>

#include "spmd/program/program.hpp"

namespace weft {

/// The program with the feature dim of convolutions' operands and results behind the spatial dims,
/// and with it that dim of all values between them: of elementwise ops, pools, sums, padding. A
/// convolution then reads and writes its operands as they are, and loops over windows are loops
/// over features. Transposes stand where another op, an input or an output has the dims in the
/// order of the given program. Values between such ops are moved together, or not at all if the
/// transposes, whose elements count `transpose_cost` times, have as many as the convolutions and
/// pools. Nothing if no value is moved.
///
/// Weights stay, and so do convolutions in groups, in f64 and of integers. Call canonicalize()
/// after it: each use of a value has a transpose of its own.
std::optional<Program> channels_last(const Program& chip_program, std::int64_t transpose_cost = 1);

}  // namespace weft
