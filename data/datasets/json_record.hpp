#pragma once
/// Parses a line of a JSON lines file, and finds values in it.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace weft {

/// The path to a value in an object: a member's name, or a JSON pointer, which begins with a slash.
class JsonKey {
 public:
  /// Throws invalid_argument for an empty key and for an invalid pointer.
  explicit JsonKey(const std::string& key);

  const std::string& text() const { return text_; }
  /// Returns the value at this path, or null if there is no value.
  const nlohmann::json* find(const nlohmann::json& object) const;

 private:
  std::string text_;
  nlohmann::json::json_pointer pointer_;
};

/// Parses the line like parse_json(). Also throws corrupt if the text isn't an object.
nlohmann::json parse_json_record(std::string_view line);

/// Returns a value's text for an error message; long texts are cut.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace weft
