#pragma once
/// Finds names that resemble a given name, for error messages.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Returns up to three of the `names` that differ from `name` in at most half of its characters.
/// The most similar name comes first.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names);

}  // namespace weft
