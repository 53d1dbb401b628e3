#pragma once
/// The gradient of a custom op and of custom_vjp(). For the files of this folder.

#include <vector>

#include "spmd/ops/row.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

/// A CustomVjpRule (passes/grad.hpp) that calls the function with which the op was registered, or
/// which custom_vjp() was given.
std::vector<ValueId> custom_cotangents(Trace& trace, const ForwardOp& op, ValueId cotangent);

}  // namespace weft
