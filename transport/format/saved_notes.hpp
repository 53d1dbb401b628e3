#pragma once
/// SavedNotes: the contents of a checkpoint manifest's `user_json`.

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// The values that a loop saved besides its tensors (CheckpointManifest::user_json). They are null
/// in a checkpoint that another program wrote.
struct SavedNotes {
  nlohmann::json metrics{};
  nlohmann::json user{};
  std::string best_by{};  ///< the metric by which the job compared checkpoints; "": none
  bool is_max_best = false;
};
std::string to_user_json(const SavedNotes& notes);
SavedNotes notes_of(const CheckpointManifest& manifest);
/// Returns the value of the metric; std::nullopt if the value isn't a number.
std::optional<double> rating_of(const SavedNotes& notes, const std::string& metric);

}  // namespace weft
