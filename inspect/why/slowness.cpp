#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "inspect/why/explain.hpp"
#include "inspect/why/explain_root.hpp"
#include "inspect/why/fixes.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// A verdict needs at least this many looks (snapshots) or collectives. With fewer, one of several
/// chips may often come last by chance.
constexpr std::size_t kLooksMin = 10;
constexpr std::uint64_t kCollectivesMin = 64;
/// A worker is slow if it is the only one that others wait for in at least this share of the looks.
/// A chip is slow if it comes last in at least this share of the collectives.
constexpr double kShareOfOne = 0.6;
/// Waits below this share of the time don't count: they are normal for chips that share a core.
constexpr double kShareOfTime = 0.1;

struct Arrivals {
  std::uint64_t collectives = 0;
  std::map<int, std::uint64_t> last;  ///< number of times that each chip came last
  std::map<int, double> waited_s;     ///< for each chip, the longest total wait of one chip for it
  double span_s = 0;
};

/// Counts which chips came last, in the events of each chip. All chips of a group have the same
/// collectives.
Arrivals arrivals_of(const Snapshot& now) {
  Arrivals arrivals;
  for (const EventRing& ring : now.rings) {
    if (ring.chip < 0 || ring.events.empty()) continue;
    std::map<int, double> waited;
    for (const Event& event : ring.events) {
      if (event.kind != EventKind::leave) continue;
      ++arrivals.collectives;
      const int last = event.peer >= 0 ? event.peer : ring.chip;
      ++arrivals.last[last];
      waited[last] += static_cast<double>(event.value) / 1e9;
    }
    for (const auto& [chip, seconds] : waited) {
      arrivals.waited_s[chip] = std::max(arrivals.waited_s[chip], seconds);
    }
    const double span =
        static_cast<double>(ring.events.back().at_ns - ring.events.front().at_ns) / 1e9;
    arrivals.span_s = std::max(arrivals.span_s, span);
  }
  return arrivals;
}

Root slow_chip(const Snapshot& now, int chip) {
  Root root{.cause = Cause::slow, .actor = fmt::format("chip {}", chip), .chips = {chip}};
  const ActorRow* row = now.chip(chip);
  root.headline = root.actor;
  if (row == nullptr) return root;
  root.workers = {row->worker};
  root.pid = row->pid;
  root.host = shown_host(now, row->worker);
  root.step = row->step;
  root.headline += fmt::format(" (worker {})", row->worker);
  return root;
}

std::optional<Root> slow_by_events(const Snapshot& now) {
  const Arrivals arrivals = arrivals_of(now);
  if (arrivals.collectives < kCollectivesMin || arrivals.span_s <= 0) return {};
  const auto most =
      std::ranges::max_element(arrivals.last, {}, [](const auto& entry) { return entry.second; });
  const double share =
      static_cast<double>(most->second) / static_cast<double>(arrivals.collectives);
  const double cost = arrivals.waited_s.at(most->first) / arrivals.span_s;
  if (share < kShareOfOne || cost < kShareOfTime) return {};
  Root root = slow_chip(now, most->first);
  root.headline +=
      fmt::format(" comes last in {:.0f} % of {} collectives", share * 100, arrivals.collectives);
  root.notes.push_back({"costs", fmt::format("{:.0f} % of the others' time", cost * 100)});
  return root;
}

/// Returns the workers whose loop or chip is awaited at this moment and doesn't wait itself. The
/// result is a single worker if all waits lead to its chips or its loop.
std::set<int> awaited_workers(const Snapshot& look) {
  std::set<int> workers;
  for (const std::vector<int>& root : WaitGraph::of(look).roots()) {
    for (const int node : root) workers.insert(worker_of_node(look, node));
  }
  return workers;
}

std::optional<Root> slow_by_looks(std::span<const Snapshot> looks) {
  std::size_t waits = 0;
  std::map<int, std::size_t> alone;
  for (const Snapshot& look : looks) {
    const bool collective = std::ranges::any_of(look.rows, [](const ActorRow& row) {
      return row.kind == ActorKind::device && row.in_collective && row.waiting_for >= 0;
    });
    if (!collective) continue;
    ++waits;
    const std::set<int> workers = awaited_workers(look);
    if (workers.size() == 1 && *workers.begin() >= 0) ++alone[*workers.begin()];
  }
  if (alone.empty() || waits < kLooksMin) return {};
  const auto most =
      std::ranges::max_element(alone, {}, [](const auto& entry) { return entry.second; });
  if (static_cast<double>(most->second) < kShareOfOne * static_cast<double>(looks.size()))
    return {};
  const Snapshot& now = looks.back();
  Root root{.cause = Cause::slow, .actor = fmt::format("worker {}", most->first)};
  root.workers = {most->first};
  if (const ActorRow* row = now.worker(most->first)) {
    root.pid = row->pid;
    root.host = shown_host(now, row->worker);
    root.step = row->step;
  }
  root.headline = fmt::format("{} ({}) is the only worker that others wait for in {} of {} samples",
                              root.actor, pid_text(root), most->second, looks.size());
  return root;
}

}  // namespace

void find_slow(Why& why, std::span<const Snapshot> looks) {
  if (looks.empty()) return;
  const bool has_events = !looks.back().rings.empty();
  const std::optional<Root> slow = has_events ? slow_by_events(looks.back()) : slow_by_looks(looks);
  if (!slow) return;
  why.verdict = Verdict::slow;
  why.roots.push_back(*slow);
  if (why.roots.back().pid > 0) why.roots.back().pids = {why.roots.back().pid};
  add_fixes(why.roots, looks.back());
}

}  // namespace weft
