#pragma once
/// A line of JSON lines, and its values.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace weft {

/// The place of a value in an object: a member's name, or a pointer that begins with a slash.
class JsonKey {
 public:
  /// Throws invalid_argument for an empty key and for what is no pointer.
  explicit JsonKey(const std::string& key);

  const std::string& text() const { return text_; }
  /// Null if there is no such value.
  const nlohmann::json* find(const nlohmann::json& object) const;

 private:
  std::string text_;
  nlohmann::json::json_pointer pointer_;
};

/// As parse_json(). Throws corrupt, too, for a text that is no object.
nlohmann::json parse_json_record(std::string_view line);

/// A value for the message of an error, cut where it is long.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace weft
