#pragma once
/// JsonView: a value in a JSON file that weft hasn't written, with its place in the file for error
/// messages.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

namespace weft {

/// Refers to a value without owning it. If the value isn't of the kind as which it is read, throws
/// corrupt with the place, such as "pre_tokenizer.pretokenizers.1.pattern".
class JsonView {
 public:
  explicit JsonView(const nlohmann::json& value, std::string place = {})
      : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  bool is_list() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }
  bool is_number(double number) const { return value_->is_number() && *value_ == number; }

  /// Returns a member of an object, or null if there is no such key.
  JsonView operator[](std::string_view key) const;
  std::vector<JsonView> items() const;
  std::vector<std::pair<std::string, JsonView>> members() const;

  const std::string& text() const;
  bool flag() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  /// Return the value, or `otherwise` if the value is null, as for a key that the file omits.
  std::string text_or(std::string_view otherwise) const;
  bool flag_or(bool otherwise) const;

  [[noreturn]] void refuse(std::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

/// A kind of component: its name, which is the value of "type" in the file, and the function that
/// makes such a component from its JSON object.
template <typename Made>
struct JsonKind {
  std::string_view type;
  std::function<Made(const JsonView&)> read;
};

/// Reads a component with the function for its kind. Throws version if `kinds` lacks the kind.
template <typename Made>
Made read_kind(const JsonView& component, std::span<const JsonKind<Made>> kinds) {
  const std::string type = component["type"].text();
  std::vector<std::string_view> known;
  for (const JsonKind<Made>& kind : kinds) {
    if (kind.type == type) return kind.read(component);
    known.push_back(kind.type);
  }
  fail(Errc::version, "{}: type '{}' isn't one that weft reads: {}", component.place(),
       type.substr(0, 80), fmt::join(known, ", "));
}

}  // namespace weft
