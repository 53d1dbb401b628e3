#pragma once
/// Composite ops as primitives: what they mean, what they are where a sharding cuts a row, and what
/// their second gradients come from.

#include <cstdint>
#include <span>

#include <weft/spmd/program/builder.hpp>

namespace weft {

/// Appends primitives that compute a composite op of a global program; gives the result.
ValueId decompose(Builder& builder, OpKind kind, std::span<const ValueId> operands,
                  std::span<const std::int64_t> attrs);

}  // namespace weft
