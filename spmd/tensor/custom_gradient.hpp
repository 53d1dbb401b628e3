#pragma once
/// The gradient of a custom op. For the files of this folder.

#include <vector>

#include "spmd/ops/row.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

/// A CustomVjpRule (passes/grad.hpp): by the vjp that the op was registered with.
std::vector<ValueId> custom_cotangents(Trace& trace, const ForwardOp& op, ValueId cotangent);

}  // namespace weft
