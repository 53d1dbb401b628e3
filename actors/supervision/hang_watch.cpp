#include "actors/supervision/hang_watch.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "actors/protocol/whereabouts.hpp"

namespace weft {

void HangWatch::look(const HangView& view, Time now) {
  std::map<int, Seen> shown;
  for (const ActorRow& row : view.rows) {
    const bool is_open = row.worker >= 0;
    if (row.kind == ActorKind::trainer || !is_open) continue;
    Seen& seen = shown[row.worker];
    // The row's time stamp isn't compared, because a waiting worker renews it too.
    seen.rows += fmt::format("{} {} {} {} {};", row.pid, static_cast<int>(row.state), row.step,
                             row.collective, row.waiting_for);
    const bool works = row.state == ActorState::compiling || row.state == ActorState::saving ||
                       row.state == ActorState::loading;
    if (works && view.core_time) {
      seen.rows += fmt::format("{};", view.core_time({row.worker, row.pid}));
    }
    if (row.kind == ActorKind::worker) seen.ended = row.state == ActorState::ended;
  }
  bool moved = !last_move_ || std::exchange(messages_, view.messages) != view.messages;
  for (auto& [worker, now_shown] : shown) {
    Seen& seen = seen_[worker];
    if (seen.rows == now_shown.rows) continue;
    seen = std::move(now_shown);
    seen.since = now;
    moved = true;
  }
  if (moved) last_move_ = now;
}

Hang HangWatch::observe(const HangView& view, Time now) {
  look(view, now);
  std::set<int> missing(view.awaited.begin(), view.awaited.end());
  for (const auto& [worker, seen] : seen_) {
    if (const auto found = find_awaited(view.rows, worker)) missing.insert(*found);
  }
  Hang hang;
  hang.all = missing.empty() && view.running && now - *last_move_ >= timeout_;
  for (auto& [worker, seen] : seen_) {
    const bool hangs =
        hang.all ? !seen.ended : missing.contains(worker) && now - seen.since >= timeout_;
    if (hangs && !std::exchange(seen.told, true)) hang.workers.push_back(worker);
  }
  return hang;
}

void HangWatch::forget() {
  seen_.clear();
  last_move_.reset();
}

}  // namespace weft
