#pragma once
/// Retention: decides which checkpoints of a folder are kept when a new one is written, and which
/// is the best.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

struct RetentionPolicy {
  int max_to_keep = 0;           ///< the newest or the best ones; 0: all
  std::uint64_t keep_every = 0;  ///< checkpoints of multiples of this many steps are kept; 0: none
  enum class Best : std::uint8_t { newest, min, max };
  Best best = Best::newest;  ///< min, max: by the rating
};

struct RatedCheckpoint {
  std::uint64_t step = 0;
  std::string path{};
  std::optional<double> rating{};  ///< a checkpoint without a rating, or with NaN, is worse than
                                   ///< all others

  friend bool operator==(const RatedCheckpoint&, const RatedCheckpoint&) = default;
};

/// Returns the checkpoints to be removed. `checkpoints` are in ascending order of steps, and the
/// last one is always kept. Among equally good ones, the newer is kept.
std::vector<RatedCheckpoint> superseded(std::vector<RatedCheckpoint> checkpoints,
                                        const RetentionPolicy& policy);

/// Returns the best checkpoint among those that have a rating. Among equally good ones, returns the
/// newest.
std::optional<RatedCheckpoint> best_of(const std::vector<RatedCheckpoint>& checkpoints,
                                       RetentionPolicy::Best best);

/// Returns the best whole checkpoint of a folder. Checkpoints that can't be read have no rating.
/// Throws io if the folder can't be listed.
std::optional<RatedCheckpoint> find_best(const std::string& folder, const std::string& metric,
                                         bool is_max_best);

}  // namespace weft
