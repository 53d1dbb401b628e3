#include "inspect/snapshot/step_rate.hpp"

#include <algorithm>

namespace weft {
namespace {

constexpr std::int64_t kWindow_ns = 10'000'000'000;
constexpr std::uint64_t kStepsLeast = 5;

double per_second(std::uint64_t steps, std::int64_t ns) {
  return static_cast<double>(steps) * 1e9 / static_cast<double>(std::max<std::int64_t>(ns, 1));
}

/// Returns the rate at which steps begin in a ring. `at_ns` is the time at which the ring was read.
/// If it is 0, returns the rate at the time of the last step.
std::optional<double> rate_of(const EventRing& ring, std::int64_t at_ns) {
  const Event* last = nullptr;
  const Event* first = nullptr;
  for (auto event = ring.events.rbegin(); event != ring.events.rend(); ++event) {
    if (event->kind != EventKind::step) continue;
    if (last == nullptr) {
      last = &*event;
      continue;
    }
    // Here the job was restarted, or continued from an earlier step.
    if (event->number >= last->number || event->at_ns > last->at_ns) break;
    const std::int64_t now_ns = std::max(at_ns, last->at_ns);
    const bool is_recent = now_ns - event->at_ns <= kWindow_ns;
    if (!is_recent && first != nullptr && last->number - first->number >= kStepsLeast) break;
    first = &*event;
  }
  if (first == nullptr) return {};
  const std::uint64_t steps = last->number - first->number;
  const double known = per_second(steps, last->at_ns - first->at_ns);
  if (at_ns <= last->at_ns) return known;
  return std::min(known, per_second(steps + 1, at_ns - first->at_ns));
}

}  // namespace

std::optional<double> steps_per_second(const Snapshot& job) {
  for (const EventRing& ring : job.rings) {
    if (ring.kind != RingKind::chip) continue;
    if (const auto rate = rate_of(ring, job.events_at_ns)) return rate;
  }
  return {};
}

}  // namespace weft
