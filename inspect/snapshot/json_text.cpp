#include "inspect/snapshot/json_text.hpp"

#include <nlohmann/json.hpp>

namespace weft {

std::string json_text(const nlohmann::json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace weft
