#pragma once
/// MeshSupervision: decides whether and when a failed actor is made again.

#include <chrono>
#include <deque>
#include <optional>

#include <weft/actor/actor_options.hpp>

namespace weft {

inline std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

/// Counts the restarts of a mesh. The caller passes the time.
class MeshSupervision {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit MeshSupervision(const Supervision& options) : options_(options) {}

  /// Called when an actor or a process of the mesh has failed. Returns the delay after which it is
  /// made again; nothing if it isn't made again.
  std::optional<std::chrono::nanoseconds> on_failure(Time now);
  /// Returns how many calls of on_failure() have returned a delay.
  int restarts() const { return restarts_; }

 private:
  Supervision options_;
  std::deque<Time> recent_;  ///< the restarts within the last `within_s` seconds
  int restarts_ = 0;
};

}  // namespace weft
