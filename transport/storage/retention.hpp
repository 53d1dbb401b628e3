#pragma once
/// Retention: decides which checkpoints of a folder remain when a new one is written, and which one
/// is the best.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

struct RetentionPolicy {
  int max_to_keep = 0;           ///< how many of the newest or best remain; 0: all remain
  std::uint64_t keep_every = 0;  ///< checkpoints at multiples of this step remain; 0: no step
  enum class Best : std::uint8_t { newest, min, max };
  /// The order of checkpoints: the best are the newest, or those with the least or greatest rating.
  Best best = Best::newest;
};

struct RatedCheckpoint {
  std::uint64_t step = 0;
  std::string path{};
  /// Without a rating, or with NaN, the checkpoint is worse than all others.
  std::optional<double> rating{};

  friend bool operator==(const RatedCheckpoint&, const RatedCheckpoint&) = default;
};

/// Returns the checkpoints to be removed. `checkpoints` must be in ascending order of steps. The
/// last checkpoint always remains. Of equally good checkpoints, the newer ones remain.
std::vector<RatedCheckpoint> superseded(std::vector<RatedCheckpoint> checkpoints,
                                        const RetentionPolicy& policy);

/// Returns the best of the checkpoints that have a rating; of equally good ones, the newest.
/// Returns nothing if no checkpoint has a rating.
std::optional<RatedCheckpoint> best_of(const std::vector<RatedCheckpoint>& checkpoints,
                                       RetentionPolicy::Best best);

/// Returns the best complete checkpoint of a folder by `metric`. Skips checkpoints that can't be
/// read. Throws io if the folder can't be listed.
std::optional<RatedCheckpoint> find_best(const std::string& folder, const std::string& metric,
                                         bool is_max_best);

}  // namespace weft
