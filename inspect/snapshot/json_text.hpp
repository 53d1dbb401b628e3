#pragma once
/// JSON as the weft command prints and stores it.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace weft {

/// Indented by 1, with a newline at its end. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& json);

}  // namespace weft
