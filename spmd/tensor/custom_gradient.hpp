#pragma once
/// The gradient of a custom op. For the files of this folder.

#include <vector>

#include "spmd/ops/row.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

/// A CustomVjpRule (passes/grad.hpp) that calls the vjp with which the op was registered.
std::vector<ValueId> custom_cotangents(Trace& trace, const ForwardOp& op, ValueId cotangent);

}  // namespace weft
