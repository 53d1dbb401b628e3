#include "inspect/why/hang.hpp"

#include <algorithm>

namespace weft {
namespace {

constexpr double kLeastPatience = 5;
constexpr double kWorkPatience = 30;
constexpr double kStartPatience = 60;
constexpr double kStepsOfPatience = 10;

/// 0 where the job keeps no events.
double p99_of_steps(const Snapshot& snapshot) {
  std::vector<double> took;
  for (const EventRing& ring : snapshot.rings) {
    if (ring.kind != RingKind::chip) continue;
    const std::vector<double> seconds = step_seconds(ring);
    took.insert(took.end(), seconds.begin(), seconds.end());
  }
  if (took.empty()) return 0;
  const auto nth = took.begin() + static_cast<std::ptrdiff_t>((took.size() - 1) * 99 / 100);
  std::ranges::nth_element(took, nth);
  return *nth;
}

}  // namespace

double patience_s(const Snapshot& snapshot) {
  if (snapshot.step() == 0) return kStartPatience;
  const bool works = std::ranges::any_of(snapshot.rows, [](const ActorRow& row) {
    return row.state == ActorState::compiling || row.state == ActorState::loading ||
           row.state == ActorState::saving;
  });
  return std::max(works ? kWorkPatience : kLeastPatience,
                  kStepsOfPatience * p99_of_steps(snapshot));
}

double idle_s(const Snapshot& snapshot) {
  std::int64_t last = 0;
  for (const ActorRow& row : snapshot.rows) {
    if (row.kind != ActorKind::trainer) last = std::max(last, row.since_ns);
  }
  return last == 0 ? 0 : std::max(0.0, snapshot.seconds_since(last));
}

bool is_hung(const Snapshot& snapshot, double patience_s) {
  if (!snapshot.live || snapshot.over() || !snapshot.held) return false;
  const bool held = std::ranges::any_of(snapshot.processes, &ProcessState::held);
  return !held && idle_s(snapshot) > patience_s;
}

bool is_hung(const Snapshot& snapshot) { return is_hung(snapshot, patience_s(snapshot)); }

Snapshot read_job(SnapshotReader& reader, SnapshotParts parts) {
  Snapshot job = reader.read(parts);
  if (parts.events || !is_hung(job)) return job;
  parts.events = true;
  return reader.read(parts);
}

bool has_moved(const Snapshot& before, const Snapshot& now) {
  if (before.status != now.status || before.rows.size() != now.rows.size()) return true;
  const auto shown = [](const ActorRow& row) {
    const bool waits = row.state == ActorState::waiting || row.state == ActorState::running;
    return std::tuple(row.index, row.pid, row.step, row.collective, row.in_collective,
                      waits ? ActorState::running : row.state);
  };
  for (std::size_t i = 0; i < now.rows.size(); ++i) {
    if (now.rows[i].kind == ActorKind::trainer) continue;
    if (shown(before.rows[i]) != shown(now.rows[i])) return true;
  }
  if (!before.control || !now.control) return false;
  if (before.control->generation != now.control->generation ||
      before.control->chips.size() != now.control->chips.size()) {
    return true;
  }
  for (std::size_t i = 0; i < now.control->chips.size(); ++i) {
    const ChipControl& then = before.control->chips[i];
    const ChipControl& chip = now.control->chips[i];
    if (then.committed != chip.committed || then.announced != chip.announced ||
        then.messages != chip.messages) {
      return true;
    }
  }
  return false;
}

}  // namespace weft
