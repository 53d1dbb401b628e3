#pragma once
/// Says where a mesh has an axis along which all chips do the same.

#include <optional>
#include <string>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Of a program that updates something by data and is cut along an axis, but not along another one
/// of more than one chip: that the chips along it do the same work, and how to give them a part of
/// it. `site` says which program it is.
std::optional<std::string> hint_at_unused_axes(const Plan& plan, const Mesh& mesh,
                                               const std::string& site);

}  // namespace weft
