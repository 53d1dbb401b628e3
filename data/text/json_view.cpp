#include "data/text/json_view.hpp"

namespace weft {

JsonView JsonView::operator[](std::string_view key) const {
  static const nlohmann::json kNull;
  if (!is_object()) refuse("an object");
  const auto found = value_->find(key);
  std::string place = place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
  return JsonView(found == value_->end() ? kNull : *found, std::move(place));
}

std::vector<JsonView> JsonView::items() const {
  if (!is_list()) refuse("a list");
  std::vector<JsonView> items;
  for (const nlohmann::json& item : *value_) {
    items.emplace_back(item, fmt::format("{}.{}", place_, items.size()));
  }
  return items;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!is_object()) refuse("an object");
  std::vector<std::pair<std::string, JsonView>> members;
  for (const auto& [key, value] : value_->items()) {
    members.emplace_back(key, JsonView(value, place_));
  }
  return members;
}

const std::string& JsonView::text() const {
  if (!is_text()) refuse("a text");
  return value_->get_ref<const std::string&>();
}

bool JsonView::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::int64_t JsonView::integer(std::int64_t least, std::int64_t most) const {
  const bool fits = value_->is_number_unsigned()
                        ? value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                        : value_->is_number_integer();
  if (!fits || value_->get<std::int64_t>() < least || value_->get<std::int64_t>() > most) {
    refuse(fmt::format("an integer from {} to {}", least, most));
  }
  return value_->get<std::int64_t>();
}

std::string JsonView::text_or(std::string_view otherwise) const {
  return is_null() ? std::string(otherwise) : text();
}

bool JsonView::flag_or(bool otherwise) const { return is_null() ? otherwise : flag(); }

void JsonView::refuse(std::string_view expected) const {
  constexpr std::size_t kBytesMax = 80;
  std::string found = value_->is_structured()
                          ? std::string(value_->type_name())
                          : value_->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (found.size() > kBytesMax) found = found.substr(0, kBytesMax) + "...";
  fail(Errc::corrupt, "{}: found {}; expected {}", place_.empty() ? "the file" : place_, found,
       expected);
}

}  // namespace weft
