#pragma once
/// Finds a mesh axis along which all chips do the same work.

#include <optional>
#include <string>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns a warning if a program with data inputs updates an input and is sharded along one axis,
/// but not along another axis of several chips. The warning names the idle axis and a mesh that
/// would use its chips. `site` identifies the program.
std::optional<std::string> hint_at_unused_axes(const Plan& plan, const Mesh& mesh,
                                               const std::string& site);

}  // namespace weft
