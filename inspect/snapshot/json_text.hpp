#pragma once
/// JsonText: writes JSON in the form that the weft command prints and stores.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace weft {

/// Returns JSON indented by 1, with a newline at its end. Bytes that aren't UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& json);

}  // namespace weft
