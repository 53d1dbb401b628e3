#pragma once
/// Retention: which checkpoints of a folder stay when a new one is there, and which is the best.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

struct RetentionPolicy {
  int max_to_keep = 0;           ///< the newest, or the best; 0: all
  std::uint64_t keep_every = 0;  ///< checkpoints of multiples of so many steps stay; 0: none
  enum class Best : std::uint8_t { newest, min, max };
  Best best = Best::newest;  ///< min, max: of the rating
};

struct RatedCheckpoint {
  std::uint64_t step = 0;
  std::string path{};
  std::optional<double> rating{};  ///< one without it, or with NaN, is worse than all others

  friend bool operator==(const RatedCheckpoint&, const RatedCheckpoint&) = default;
};

/// Those that go. `checkpoints` are by ascending step; the last one stays always. Of equally good
/// ones the newer stays.
std::vector<RatedCheckpoint> superseded(std::vector<RatedCheckpoint> checkpoints,
                                        const RetentionPolicy& policy);

/// The best of those that have a rating; of equally good ones the newest.
std::optional<RatedCheckpoint> best_of(const std::vector<RatedCheckpoint>& checkpoints,
                                       RetentionPolicy::Best best);

/// The best whole checkpoint of a folder. Those that can't be read have no rating. Throws io if the
/// folder can't be listed.
std::optional<RatedCheckpoint> find_best(const std::string& folder, const std::string& metric,
                                         bool is_max_best);

}  // namespace weft
