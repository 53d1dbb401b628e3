#pragma once
/// MeshSupervision: decides whether a failed actor is made again.

#include <chrono>
#include <deque>
#include <optional>

#include <weft/actor/actor_options.hpp>

namespace weft {

inline std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

/// Counts the restarts of a mesh. It reads no clock.
class MeshSupervision {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit MeshSupervision(const Supervision& options) : options_(options) {}

  /// An actor or a process of the mesh has failed. Returns after what time it is made again;
  /// nothing if it isn't.
  std::optional<std::chrono::nanoseconds> on_failure(Time now);
  /// Returns the number of calls of on_failure() that returned a time.
  int restarts() const { return restarts_; }

 private:
  Supervision options_;
  std::deque<Time> recent_;  ///< restarts within `within_s`
  int restarts_ = 0;
};

}  // namespace weft
