#pragma once
/// Decides which values of a chip's program have their features in the last dim, and moves them.

#include <cstdint>
#include <optional>

#include "spmd/program/program.hpp"

namespace weft {

/// Returns the program with the feature dim of convolutions' operands and results moved to the
/// end. That dim is also moved in values between convolutions, such as those of elementwise ops,
/// pools, sums and padding. A convolution then reads and writes contiguous features. Transposes
/// are added where another op, an input or an output needs the original order. Connected values
/// are moved together, if the convolutions and pools have more elements than the transposes that
/// are needed. Each element of a transpose counts `transpose_cost` times. Returns nothing if no
/// value is moved.
///
/// Weights aren't moved, and neither are convolutions in groups, in f64 or of integers. Call
/// canonicalize() afterwards, because each use of a value gets a transpose of its own.
std::optional<Program> channels_last(const Program& chip_program, std::int64_t transpose_cost = 1);

}  // namespace weft
