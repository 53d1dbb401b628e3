#include "actors/keeper/mesh_supervision.hpp"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

constexpr double kBackoffMax = 30;
/// The seconds after which a restart doesn't delay later ones any more.
constexpr double kForgetAfter = 60;

}  // namespace

std::optional<std::chrono::nanoseconds> MeshSupervision::on_failure(Time now) {
  const double window = options_.within_s > 0       ? options_.within_s
                        : options_.max_restarts < 0 ? kForgetAfter
                                                    : 0;
  const auto is_old = [&](Time restart) {
    return window > 0 && std::chrono::duration<double>(now - restart).count() > window;
  };
  while (!recent_.empty() && is_old(recent_.front())) recent_.pop_front();
  const auto count = static_cast<int>(recent_.size());
  if (options_.max_restarts >= 0 && count >= options_.max_restarts) return std::nullopt;
  recent_.push_back(now);
  ++restarts_;
  const double delay =
      std::min(options_.backoff_s * std::pow(2.0, std::min(count, 30)), kBackoffMax);
  return nanoseconds(delay);
}

}  // namespace weft
