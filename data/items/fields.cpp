#include "data/items/fields.hpp"

#include <algorithm>

#include <set>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {

std::string fields_text(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.name, field.type.to_string());
  }
  return text.empty() ? "no fields" : text;
}

void check_fields(std::string_view dataset, const std::vector<Field>& fields) {
  if (fields.empty()) fail(Errc::invalid_argument, "{}: has no fields", dataset);
  std::set<std::string_view> names;
  for (const Field& field : fields) {
    if (field.name.empty()) {
      fail(Errc::invalid_argument, "{}: field {} of {} has no name", dataset, names.size(),
           fields.size());
    }
    if (!names.insert(field.name).second) {
      fail(Errc::invalid_argument, "{}: two fields have the name '{}'", dataset, field.name);
    }
  }
}

std::string name_of_parts(std::string_view kind, std::span<const DatasetPtr> parts) {
  constexpr std::size_t kNamedParts = 4;
  std::vector<std::string> names;
  for (const DatasetPtr& part : parts.first(std::min(parts.size(), kNamedParts))) {
    names.push_back(part->name());
  }
  return fmt::format("{}({}{})", kind, fmt::join(names, ", "),
                     parts.size() > kNamedParts ? ", ..." : "");
}

void check_parts(std::string_view kind, std::span<const DatasetPtr> parts) {
  if (parts.empty()) fail(Errc::invalid_argument, "{}: there are no parts", kind);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]) fail(Errc::invalid_argument, "{}: part {} is null", kind, i);
  }
}

void check_alike(std::string_view kind, std::span<const DatasetPtr> parts) {
  check_parts(kind, parts);
  for (const DatasetPtr& part : parts) {
    if (part->fields() == parts.front()->fields()) continue;
    fail(Errc::invalid_argument,
         "{}: '{}' has {}, but '{}' has {}: all parts must have the same fields", kind,
         parts.front()->name(), fields_text(parts.front()->fields()), part->name(),
         fields_text(part->fields()));
  }
}

bool is_any_sequential(std::span<const DatasetPtr> parts) {
  return std::ranges::any_of(parts, [](const DatasetPtr& part) { return part->is_sequential(); });
}

void check_any_order(std::string_view kind, std::span<const DatasetPtr> parts,
                     std::string_view advice) {
  const auto found =
      std::ranges::find_if(parts, [](const DatasetPtr& part) { return part->is_sequential(); });
  if (found == parts.end()) return;
  fail(Errc::invalid_argument,
       "{}: the items of '{}' can be read only in one order, like a stream: {}", kind,
       (*found)->name(), advice);
}

}  // namespace weft
