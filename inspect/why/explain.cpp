#include "inspect/why/explain.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "inspect/snapshot/snapshot_reader.hpp"
#include "inspect/why/explain_root.hpp"
#include "inspect/why/hang.hpp"
#include "inspect/why/job_ends.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// What the roots of a graph come to: nodes by worker, and circles.
struct Suspects {
  std::map<int, std::vector<int>> workers;  ///< a worker, and those of its chips that are roots
  std::vector<std::vector<int>> circles;
  bool trainer = false;
};

bool has_ended(const ActorRow& row) {
  return row.state == ActorState::ended || row.state == ActorState::absent;
}

/// Also those for which nobody waits yet.
void add_broken(const Snapshot& now, Suspects& suspects) {
  for (const ActorRow& row : now.rows) {
    if (row.kind != ActorKind::worker || row.worker < 0 || has_ended(row)) continue;
    const bool failed = row.state == ActorState::failed || !row.last_error.empty();
    if (failed || is_frozen(now, row.worker)) suspects.workers[row.worker];
  }
}

Suspects find_suspects(const Snapshot& now, const WaitGraph& graph, bool still) {
  Suspects suspects;
  add_broken(now, suspects);
  if (!still) return suspects;
  for (const std::vector<int>& nodes : graph.roots()) {
    if (nodes.size() > 1) {
      suspects.circles.push_back(nodes);
      continue;
    }
    const int node = nodes.front();
    if (node == 0) {
      suspects.trainer = true;
      continue;
    }
    const int worker = worker_of_node(now, node);
    if (worker < 0) continue;
    std::vector<int>& chips = suspects.workers[worker];
    if (node > now.header.num_workers) chips.push_back(node - 1 - now.header.num_workers);
  }
  return suspects;
}

Verdict verdict_of(const std::vector<Root>& roots, bool patience_is_over) {
  switch (roots.front().cause) {
    case Cause::killed:
    case Cause::lost:
    case Cause::failed:
    case Cause::no_space:
    case Cause::uneven: return Verdict::failed;
    case Cause::diverged:
    case Cause::stopped:
    case Cause::device:
    case Cause::deadlock: return Verdict::hung;
    case Cause::held: return Verdict::held;
    case Cause::busy: return patience_is_over ? Verdict::hung : Verdict::waits;
    case Cause::slow: return Verdict::slow;
  }
  return Verdict::unknown;
}

/// Steps a second between two looks; below 0: unknown.
double rate(const Snapshot& before, const Snapshot& now) {
  const double seconds = now.seconds_since(before.at_ns);
  if (seconds <= 0 || now.step() <= before.step()) return -1;
  return static_cast<double>(now.step() - before.step()) / seconds;
}

void add_waits(const Snapshot& now, const WaitGraph& graph, Why& why) {
  why.waits = graph.waits();
  for (int node = 0; node < graph.num_nodes(); ++node) {
    why.names.push_back(name_of_node(now, node));
  }
}

void explain_living(const Snapshot& before, const Snapshot& now, const WhyOptions& options,
                    Why& why) {
  const bool still = !has_moved(before, now);
  const WaitGraph graph = WaitGraph::of(now);
  const RootView view{before, now, graph};
  const Suspects suspects = find_suspects(now, graph, still);
  for (const auto& [worker, chips] : suspects.workers) {
    why.roots.push_back(explain_worker(view, worker, chips));
  }
  for (const std::vector<int>& circle : suspects.circles) {
    why.roots.push_back(explain_circle(view, circle));
  }
  if (suspects.trainer) why.roots.push_back(explain_trainer(view));
  why.roots = merged(std::move(why.roots));
  std::ranges::stable_sort(why.roots, [](const Root& a, const Root& b) {
    return std::pair(a.cause, b.waiters.size()) < std::pair(b.cause, a.waiters.size());
  });
  // A loop that only its own chips wait for isn't to blame where something is broken.
  if (!why.roots.empty() && why.roots.front().cause != Cause::busy) {
    std::erase_if(why.roots, [](const Root& root) {
      return root.cause == Cause::busy && root.waiters.empty();
    });
  }
  if (still) add_waits(now, graph, why);
  const double patience = options.patience_s > 0 ? options.patience_s : patience_s(now);
  if (!why.roots.empty()) {
    why.verdict = verdict_of(why.roots, why.idle_s > patience);
    if (why.verdict == Verdict::waits) {
      why.summary = fmt::format("nothing has moved for {}, a hang would be {}",
                                seconds_text(why.idle_s), seconds_text(patience));
    }
    return;
  }
  why.verdict = still && why.idle_s > patience ? Verdict::unknown : Verdict::well;
  if (why.verdict == Verdict::unknown) {
    why.summary = fmt::format("nothing has moved for {}, and nobody is seen to be awaited",
                              seconds_text(why.idle_s));
    return;
  }
  why.summary = fmt::format("step {}", now.step());
  const double steps_a_second = rate(before, now);
  if (steps_a_second > 0) why.summary += fmt::format(", {:.0f} steps/s", steps_a_second);
}

}  // namespace

Why explain(const Snapshot& before, const Snapshot& now, const WhyOptions& options) {
  Why why{.job = now.job, .name = now.header.name, .idle_s = idle_s(now)};
  if (!now.no_control.empty() && now.live && now.held) {
    why.remarks.push_back("epochs can't be read, waits are those that the board shows: " +
                          now.no_control);
  }
  if (now.control && now.arenas_named) why.kept_step = now.control->common_step();
  if (now.over() || now.end) {
    explain_end(now, why);
  } else if (!now.held) {
    why.roots.push_back(explain_lost_trainer(now));
    why.verdict = Verdict::failed;
  } else {
    explain_living(before, now, options, why);
  }
  return why;
}

Why explain_after_hang(const Snapshot& end, const Snapshot& hang) {
  const Why ended = explain(end, end);
  Why why = explain(hang, hang);
  why.verdict = ended.verdict == Verdict::failed ? Verdict::failed : Verdict::hung;
  for (Root& root : why.roots) root.mend.clear();  // its processes are gone
  why.roots.insert(why.roots.end(), ended.roots.begin(), ended.roots.end());
  why.summary = ended.summary;
  why.remarks.push_back("this was seen while it hung, before it ended");
  return why;
}

Why explain_ended(const Snapshot& end) {
  const std::optional<Snapshot> hang = SnapshotReader::read_hang(end.header.run_dir);
  return hang ? explain_after_hang(end, *hang) : explain(end, end);
}

std::vector<int> worth_a_sight(const Snapshot& before, const Snapshot& now) {
  std::vector<int> pids;
  for (const Root& root : explain(before, now).roots) {
    const bool dead = root.cause == Cause::killed || root.cause == Cause::lost;
    if (root.pid > 0 && !dead && !std::ranges::count(pids, root.pid)) pids.push_back(root.pid);
  }
  return pids;
}

}  // namespace weft
