#include "data/datasets/json_record.hpp"

#include <weft/tensor/error.hpp>

#include "data/formats/strict_json.hpp"

namespace weft {

JsonKey::JsonKey(const std::string& key) : text_(key) {
  if (key.empty()) {
    fail(Errc::invalid_argument, "key is empty: expected a member's name, or a pointer (/a/b)");
  }
  try {
    pointer_ =
        key[0] == '/' ? nlohmann::json::json_pointer(key) : nlohmann::json::json_pointer() / key;
  } catch (const nlohmann::json::exception& error) {
    fail(Errc::invalid_argument, "key = '{}': isn't a JSON pointer: {}", key, error.what());
  }
}

const nlohmann::json* JsonKey::find(const nlohmann::json& object) const {
  try {
    return object.contains(pointer_) ? &object.at(pointer_) : nullptr;
  } catch (const nlohmann::json::exception&) {  // thrown for a pointer such as "/a/-" into a list
    return nullptr;
  }
}

nlohmann::json parse_json_record(std::string_view line) {
  nlohmann::json record = parse_json(line);
  if (!record.is_object()) {
    fail(Errc::corrupt, "is {}: expected a JSON object", json_excerpt(record));
  }
  return record;
}

std::string json_excerpt(const nlohmann::json& value) {
  constexpr std::size_t kBytesMax = 80;
  if (value.is_structured()) return fmt::format("an {}", value.type_name());
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() > kBytesMax ? text.substr(0, kBytesMax) + "..." : text;
}

}  // namespace weft
