#pragma once
/// Decides which values of a chip's program get their features as the last dim, and reorders their
/// dims.

#include <cstdint>
#include <optional>

#include "spmd/program/program.hpp"

namespace weft {

/// Returns the program with the feature dim of convolutions' operands and results moved to the end.
/// This dim is also moved in values between convolutions, such as results of elementwise ops,
/// pools, sums and padding. A convolution then reads and writes contiguous features. Transposes are
/// added where another op, an input or an output needs the original order. Connected values are
/// moved together, if their convolutions and pools have more elements than the transposes that
/// become necessary. An element of a transpose counts `transpose_cost` times. Returns nothing if no
/// dim is moved.
///
/// Dims of weights aren't moved, and neither are dims of convolutions that are in groups, in f64 or
/// of integers. Call canonicalize() afterwards to merge transposes, because each use of a value
/// gets its own transpose.
std::optional<Program> channels_last(const Program& chip_program, std::int64_t transpose_cost = 1);

}  // namespace weft
