#include <weft/actors/trainer/hang_watch.hpp>

#include <set>

#include <fmt/format.h>

#include <weft/actors/trainer/whereabouts.hpp>

namespace weft {

std::vector<int> HangWatch::observe(std::span<const ActorRow> rows, std::span<const int> awaited,
                                    Time now) {
  std::map<int, std::string> shown;
  for (const ActorRow& row : rows) {
    if (row.kind == ActorKind::trainer) continue;
    // Not the time stamp: who waits renews it.
    shown[row.worker] += fmt::format("{} {} {} {} {};", row.pid, static_cast<int>(row.state),
                                     row.step, row.collective, row.waiting_for);
  }
  for (auto& [worker, text] : shown) {
    Seen& seen = seen_[worker];
    if (seen.rows != text) seen = {.rows = std::move(text), .since = now};
  }
  std::set<int> missing(awaited.begin(), awaited.end());
  for (const auto& [worker, seen] : seen_) {
    if (const auto found = find_awaited(rows, worker)) missing.insert(*found);
  }
  std::vector<int> hung;
  for (const int worker : missing) {
    const auto seen = seen_.find(worker);
    if (seen != seen_.end() && now - seen->second.since >= timeout_) hung.push_back(worker);
  }
  return hung;
}

}  // namespace weft
