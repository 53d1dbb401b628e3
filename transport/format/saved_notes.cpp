#include "transport/format/saved_notes.hpp"

namespace weft {

std::string to_user_json(const SavedNotes& notes) {
  nlohmann::json json{{"metrics", notes.metrics}, {"user", notes.user}};
  if (!notes.best_by.empty()) {
    json["best_by"] = notes.best_by;
    json["best_mode"] = notes.is_max_best ? "max" : "min";
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

SavedNotes notes_of(const CheckpointManifest& manifest) {
  const nlohmann::json json = nlohmann::json::parse(manifest.user_json, nullptr, false);
  if (!json.is_object()) return {};
  const auto value = [&](const char* key) {
    return json.contains(key) ? json[key] : nlohmann::json();
  };
  const nlohmann::json best_by = value("best_by");
  return {.metrics = value("metrics"),
          .user = value("user"),
          .best_by = best_by.is_string() ? best_by.get<std::string>() : "",
          .is_max_best = value("best_mode") == "max"};
}

std::optional<double> rating_of(const SavedNotes& notes, const std::string& metric) {
  if (!notes.metrics.is_object()) return std::nullopt;
  const auto found = notes.metrics.find(metric);
  if (found == notes.metrics.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace weft
