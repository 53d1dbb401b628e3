#include "inspect/why/hang.hpp"

#include <algorithm>
#include <optional>

namespace weft {
namespace {

constexpr double kLeastPatience = 5;
constexpr double kWorkPatience = 30;
constexpr double kStartPatience = 60;
constexpr double kStepsOfPatience = 10;

/// Returns the 99th percentile of the durations of the job's steps; 0 if the job keeps no events.
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

/// While chips wait, a loop that gives no chip any work counts as moving for only this multiple of
/// the patience.
constexpr double kTurnsOfPatience = 6;
constexpr double kLeastStopPatience = 1;

bool is_device(const ActorRow& row) { return row.kind == ActorKind::device; }

bool some_chip_waits(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.rows, [](const ActorRow& row) {
    return is_device(row) && (row.state == ActorState::waiting || row.waiting_for >= 0);
  });
}

double seconds_after(const Snapshot& snapshot, std::int64_t last) {
  return last == 0 ? 0 : std::max(0.0, snapshot.seconds_since(last));
}

/// Returns whether chips wait, and no chip has got work for a long time. The activity of loops then
/// doesn't count as movement.
bool turns_in_vain(const Snapshot& snapshot) {
  if (!some_chip_waits(snapshot)) return false;
  std::int64_t last = 0;
  for (const ActorRow& row : snapshot.rows) {
    if (is_device(row)) last = std::max(last, row.since_ns);
  }
  return seconds_after(snapshot, last) > kTurnsOfPatience * patience_s(snapshot);
}

/// Finds the time at which a row last moved.
class Moves {
 public:
  explicit Moves(const Snapshot& snapshot)
      : some_wait_(some_chip_waits(snapshot)), in_vain_(turns_in_vain(snapshot)) {}

  std::int64_t last(const ActorRow& row) const {
    if (row.kind == ActorKind::trainer || (in_vain_ && !is_device(row))) return 0;
    return some_wait_ && row.moved_ns != 0 && !is_device(row) ? row.moved_ns : row.since_ns;
  }
  /// Returns the row's state, by which a change is noticed. States between which a change isn't a
  /// movement give the same value.
  std::optional<ActorState> state(const ActorRow& row) const {
    if (in_vain_ && !is_device(row)) return {};
    if (row.state == ActorState::waiting) return ActorState::running;
    if (some_wait_ && row.state == ActorState::reporting) return ActorState::user_code;
    return row.state;
  }

 private:
  bool some_wait_;
  bool in_vain_;
};

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

double stop_patience_s(const Snapshot& snapshot, double patience) {
  return std::min(patience,
                  std::max(kLeastStopPatience, kStepsOfPatience * p99_of_steps(snapshot)));
}

double idle_s(const Snapshot& snapshot) {
  const Moves moves(snapshot);
  std::int64_t last = 0;
  for (const ActorRow& row : snapshot.rows) last = std::max(last, moves.last(row));
  return seconds_after(snapshot, last);
}

double idle_s(const Snapshot& snapshot, int worker) {
  const Moves moves(snapshot);
  std::int64_t last = 0;
  for (const ActorRow& row : snapshot.rows) {
    if (row.worker == worker) last = std::max(last, moves.last(row));
  }
  return seconds_after(snapshot, last);
}

bool compiles(const Snapshot& snapshot, const ActorRow& row) {
  if (row.state != ActorState::compiling) return false;
  const ProcessState* process = snapshot.process(row);
  if (process == nullptr) return false;
  return std::ranges::any_of(process->threads, [&](const ThreadState& thread) {
    return thread.state == 'R' && (row.kind == ActorKind::device || thread.tid == row.tid);
  });
}

std::optional<double> awaits_commands_s(const Snapshot& snapshot) {
  std::int64_t since = 0;
  for (const ActorRow& row : snapshot.rows) {
    if (row.kind != ActorKind::worker || row.state == ActorState::ended) continue;
    if (row.state != ActorState::commands) return {};
    since = std::max(since, row.since_ns);
  }
  return since == 0 ? std::nullopt : std::optional(seconds_after(snapshot, since));
}

bool is_hung(const Snapshot& snapshot, double patience_s) {
  if (!snapshot.live || snapshot.over() || !snapshot.held) return false;
  if (awaits_commands_s(snapshot)) return false;
  if (std::ranges::any_of(snapshot.processes, &ProcessState::held)) return false;
  const auto works = [&](const ActorRow& row) { return compiles(snapshot, row); };
  return idle_s(snapshot) > patience_s && std::ranges::none_of(snapshot.rows, works);
}

bool is_hung(const Snapshot& snapshot) { return is_hung(snapshot, patience_s(snapshot)); }

bool waits_for_callback(const Snapshot& snapshot) {
  const ActorRow* trainer = snapshot.trainer();
  if (trainer == nullptr || trainer->inside_since_ns == 0) return false;
  return std::ranges::all_of(snapshot.rows, [](const ActorRow& row) {
    return row.kind != ActorKind::worker || row.state == ActorState::ended ||
           row.state == ActorState::absent || row.state == ActorState::idle;
  });
}

double callback_s(const Snapshot& snapshot) {
  const ActorRow* trainer = snapshot.trainer();
  return trainer == nullptr ? 0 : seconds_after(snapshot, trainer->inside_since_ns);
}

bool has_moved(const Snapshot& before, const Snapshot& now) {
  if (before.status != now.status || before.rows.size() != now.rows.size()) return true;
  const Moves moves(now);
  const auto shown = [&](const ActorRow& row) {
    return std::tuple(row.index, row.pid, row.step, row.collective, row.in_collective,
                      moves.state(row));
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
