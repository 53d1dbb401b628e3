#pragma once
/// Retention: decides which checkpoints of a folder remain when a new one is written, and which one
/// is the best.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

struct RetentionPolicy {
  int max_to_keep = 0;           ///< how many of the newest or best remain; 0: all
  std::uint64_t keep_every = 0;  ///< checkpoints at multiples of this step number remain; 0: none
  enum class Best : std::uint8_t { newest, min, max };
  Best best = Best::newest;  ///< min and max compare the ratings
};

struct RatedCheckpoint {
  std::uint64_t step = 0;
  std::string path{};
  std::optional<double> rating{};  ///< a checkpoint without a rating, or with NaN, is worse than
                                   ///< all others

  friend bool operator==(const RatedCheckpoint&, const RatedCheckpoint&) = default;
};

/// Returns the checkpoints to be removed. `checkpoints` must be in ascending order of steps. The
/// last one always remains. Among equally good ones, the newer ones remain.
std::vector<RatedCheckpoint> superseded(std::vector<RatedCheckpoint> checkpoints,
                                        const RetentionPolicy& policy);

/// Returns the best of the checkpoints that have a rating; among equally good ones, the newest.
/// Returns nothing if no checkpoint has a rating.
std::optional<RatedCheckpoint> best_of(const std::vector<RatedCheckpoint>& checkpoints,
                                       RetentionPolicy::Best best);

/// Returns the best whole checkpoint of a folder by `metric`. Checkpoints that can't be read are
/// skipped. Throws io if the folder can't be listed.
std::optional<RatedCheckpoint> find_best(const std::string& folder, const std::string& metric,
                                         bool is_max_best);

}  // namespace weft
