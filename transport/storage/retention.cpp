#include "transport/storage/retention.hpp"

#include <algorithm>
#include <cmath>

#include <weft/tensor/error.hpp>

#include "transport/format/saved_notes.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {
namespace {

bool has_rating(const RatedCheckpoint& checkpoint) {
  return checkpoint.rating && !std::isnan(*checkpoint.rating);
}

bool is_better(const RatedCheckpoint& a, const RatedCheckpoint& b, RetentionPolicy::Best best) {
  if (best != RetentionPolicy::Best::newest) {
    if (has_rating(a) != has_rating(b)) return has_rating(a);
    if (has_rating(a) && *a.rating != *b.rating) {
      return best == RetentionPolicy::Best::min ? *a.rating < *b.rating : *a.rating > *b.rating;
    }
  }
  return a.step > b.step;
}

}  // namespace

std::vector<RatedCheckpoint> superseded(std::vector<RatedCheckpoint> checkpoints,
                                        const RetentionPolicy& policy) {
  if (policy.max_to_keep == 0 || checkpoints.empty()) return {};
  const std::uint64_t newest = checkpoints.back().step;
  std::ranges::stable_sort(
      checkpoints, [&](const auto& a, const auto& b) { return is_better(a, b, policy.best); });
  const auto kept = std::min(checkpoints.size(), static_cast<std::size_t>(policy.max_to_keep));
  checkpoints.erase(checkpoints.begin(), checkpoints.begin() + static_cast<std::ptrdiff_t>(kept));
  std::erase_if(checkpoints, [&](const RatedCheckpoint& checkpoint) {
    return checkpoint.step == newest ||
           (policy.keep_every != 0 && checkpoint.step % policy.keep_every == 0);
  });
  std::ranges::sort(checkpoints, {}, &RatedCheckpoint::step);
  return checkpoints;
}

std::optional<RatedCheckpoint> best_of(const std::vector<RatedCheckpoint>& checkpoints,
                                       RetentionPolicy::Best best) {
  const RatedCheckpoint* found = nullptr;
  for (const RatedCheckpoint& checkpoint : checkpoints) {
    if (!has_rating(checkpoint)) continue;
    if (found == nullptr || is_better(checkpoint, *found, best)) found = &checkpoint;
  }
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<RatedCheckpoint> find_best(const std::string& folder, const std::string& metric,
                                         bool is_max_best) {
  std::vector<RatedCheckpoint> rated;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    try {
      rated.push_back(
          {entry.step, entry.path, rating_of(notes_of(read_manifest(entry.path)), metric)});
    } catch (const Error&) {
      // A checkpoint that can't be read is skipped, as a job that resumes skips it.
    }
  }
  return best_of(rated, is_max_best ? RetentionPolicy::Best::max : RetentionPolicy::Best::min);
}

}  // namespace weft
