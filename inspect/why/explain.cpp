#include "inspect/why/explain.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "inspect/hosts/job_reader.hpp"
#include "inspect/snapshot/step_rate.hpp"
#include "inspect/why/explain_root.hpp"
#include "inspect/why/fixes.hpp"
#include "inspect/why/hang.hpp"
#include "inspect/why/job_ends.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// The roots of a wait graph, which are suspected: single workers and chips, and circles of waits.
struct Suspects {
  std::map<int, std::vector<int>> workers;  ///< by worker: its chips that are roots
  std::vector<std::vector<int>> circles;
  bool trainer = false;
};

bool has_ended(const ActorRow& row) {
  return row.state == ActorState::ended || row.state == ActorState::absent;
}

/// Returns whether the process has run between the two snapshots. If its core time has grown, a
/// process that was seen stopped has been continued and stopped again, for example by strace or by
/// a CPU quota.
bool has_run(const Snapshot& before, const ProcessState& now) {
  const ProcessState* then = before.process(now.id());
  if (then == nullptr) return false;
  return !then->frozen() || then->core_ns != now.core_ns;
}

/// Returns a copy of `now` in which processes that were frozen only for a moment count as running.
Snapshot without_moments(const Snapshot& before, const Snapshot& now) {
  Snapshot steady = now;
  for (ProcessState& process : steady.processes) {
    if (process.gone() || !process.frozen() || !has_run(before, process)) continue;
    process.state = 'S';
    process.frozen_by.clear();
  }
  return steady;
}

bool has_moments(const Snapshot& before, const Snapshot& now) {
  return std::ranges::any_of(now.processes, [&](const ProcessState& process) {
    return !process.gone() && process.frozen() && has_run(before, process);
  });
}

/// Adds broken actors, even if no actor waits for them yet.
void add_broken(const Snapshot& now, Suspects& suspects) {
  for (const ActorRow& row : now.rows) {
    if (row.kind != ActorKind::worker || row.worker < 0 || has_ended(row)) continue;
    const bool failed = row.state == ActorState::failed || !row.last_error.empty();
    if (failed || is_frozen(now, row.worker)) suspects.workers[row.worker];
  }
  const ProcessState* trainer = now.process(now.trainer_id());
  if (trainer != nullptr && trainer->frozen() && !trainer->gone()) suspects.trainer = true;
}

Suspects find_suspects(const Snapshot& now, const WaitGraph& graph, bool still) {
  Suspects suspects;
  add_broken(now, suspects);
  if (waits_for_callback(now)) suspects.trainer = true;
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

/// The times that each kind of root may last before it counts as a hang.
struct Patience {
  double wait_s = 0;
  double stop_s = 0;
  double circle_s = 0;  ///< how long a circle of waits may last
  double idle_s = 0;    ///< how long ago anything in the job moved
};

Verdict verdict_of(const Root& root, const Patience& patience) {
  const auto if_over = [](bool over, Verdict verdict) { return over ? verdict : Verdict::waits; };
  switch (root.cause) {
    case Cause::killed:
    case Cause::crashed:
    case Cause::lost:
    case Cause::failed:
    case Cause::no_space:
    case Cause::uneven: return Verdict::failed;
    case Cause::stopped:
    case Cause::frozen: return if_over(root.since_s > patience.stop_s, Verdict::hung);
    case Cause::held: return if_over(root.since_s > patience.stop_s, Verdict::held);
    case Cause::blocked: return if_over(root.since_s > patience.wait_s, Verdict::hung);
    case Cause::compiling:
    case Cause::loading:
      return if_over(!root.works && patience.idle_s > patience.wait_s, Verdict::hung);
    case Cause::slow: return Verdict::slow;
    default: return if_over(patience.idle_s > patience.wait_s, Verdict::hung);
  }
}

/// Returns the worst verdict. A failure counts as worse than a hang, because it explains the hang
/// that follows from it.
Verdict verdict_of(const std::vector<Root>& roots, const Patience& patience) {
  Verdict worst = Verdict::waits;
  for (const Verdict verdict : {Verdict::held, Verdict::hung, Verdict::failed}) {
    const bool is_any = std::ranges::any_of(
        roots, [&](const Root& root) { return verdict_of(root, patience) == verdict; });
    if (is_any) worst = verdict;
  }
  return worst;
}

void add_waits(const Snapshot& now, const WaitGraph& graph, Why& why) {
  why.waits = graph.waits();
  for (int node = 0; node < graph.num_nodes(); ++node) {
    why.names.push_back(name_of_node(now, node));
  }
}

std::vector<Root> find_roots(const RootView& view, bool still) {
  const Suspects suspects = find_suspects(view.now, view.graph, still);
  std::vector<Root> roots;
  if (suspects.trainer) roots.push_back(explain_trainer(view));
  for (const auto& [worker, chips] : suspects.workers) {
    roots.push_back(explain_worker(view, worker, chips));
  }
  for (const std::vector<int>& circle : suspects.circles) {
    roots.push_back(explain_circle(view, circle));
  }
  return roots;
}

bool is_at_work(const Root& root) {
  return root.cause == Cause::busy || root.cause == Cause::compiling ||
         root.cause == Cause::loading;
}

/// Sorts the roots, the most important first, and removes roots that aren't to blame.
void sort_out(std::vector<Root>& roots) {
  std::ranges::stable_sort(roots, [](const Root& a, const Root& b) {
    return std::tuple(a.cause, !a.workers.empty(), b.waiters.size()) <
           std::tuple(b.cause, !b.workers.empty(), a.waiters.size());
  });
  // If something is broken, a loop that works and blocks only its own chips isn't to blame.
  if (roots.empty() || is_at_work(roots.front())) return;
  std::erase_if(roots, [](const Root& root) { return is_at_work(root) && root.waiters.empty(); });
}

/// Drops roots that have lasted only for a moment: stopped processes, and circles of waits. Waits
/// that followed each other may look like a circle, because a snapshot isn't taken at one instant.
void drop_moments(std::vector<Root>& roots, const Patience& patience, Why& why) {
  std::erase_if(roots, [&](const Root& root) {
    const bool stands =
        root.cause == Cause::stopped || root.cause == Cause::frozen || root.cause == Cause::held;
    const bool is_circle = root.cause == Cause::deadlock || root.cause == Cause::diverged;
    const bool lasts = root.since_s > (is_circle ? patience.circle_s : patience.stop_s);
    if (!(stands || is_circle) || lasts) return false;
    if (stands) {
      why.remarks.push_back(fmt::format("{} {} now, for at most {} so far", root.actor,
                                        root.process, seconds_text(root.since_s)));
    }
    return true;
  });
}

void add_remarks(const Snapshot& now, Why& why) {
  for (const std::string& reason : now.streams.unreadable) why.remarks.push_back(reason);
  for (const HostSight& host : now.hosts) {
    if (host.silence.empty()) continue;
    why.remarks.push_back(
        fmt::format("{}; its processes can't be seen: {}", silence_text(host), host.silence));
  }
  if (!now.hidden.empty()) {
    why.remarks.push_back(fmt::format(
        "the job's processes can't be seen from here: {}; the trainer's lock shows that the "
        "trainer is alive; run this command where the job runs (docker exec, nsenter -t PID -p -m)",
        now.hidden));
  }
  for (const ProcessState& process : now.processes) {
    if (process.tracer == 0 || process.held() || process.gone()) continue;
    why.remarks.push_back(fmt::format("{} (pid {}) traces pid {}, but lets it run",
                                      process.tracer_name, process.tracer, process.pid));
  }
}

std::string summary_of_well(const Snapshot& now) {
  if (const auto waited_s = awaits_commands_s(now)) {
    return fmt::format(
        "step {}, all loops have waited for a command for {}; Job::post() or `weft post` posts "
        "one",
        now.step(), seconds_text(*waited_s));
  }
  const std::optional<double> rate = steps_per_second(now);
  return fmt::format("step {}{}", now.step(),
                     rate ? fmt::format(", {} steps/s", per_second_text(*rate)) : "");
}

void explain_living(const Snapshot& before, const Snapshot& now, const WhyOptions& options,
                    Why& why) {
  const bool still = !has_moved(before, now);
  const bool is_given = options.patience_s > 0;
  Patience patience{.wait_s = is_given ? options.patience_s : patience_s(now),
                    .idle_s = why.idle_s};
  patience.circle_s = stop_patience_s(now, patience.wait_s);
  patience.stop_s = is_given ? options.patience_s : patience.circle_s;
  const WaitGraph graph = WaitGraph::of(now);
  const RootView view{before, now, graph, why.idle_s > patience.wait_s && !awaits_commands_s(now)};
  why.roots = find_roots(view, still);
  if (awaits_commands_s(now) && callback_s(now) == 0) {
    std::erase_if(why.roots, is_at_work);  // because the trainer waits for a command, too
  }
  drop_moments(why.roots, patience, why);
  why.roots = merged(view, std::move(why.roots));
  sort_out(why.roots);
  add_fixes(why.roots, now);
  add_remarks(now, why);
  if (still) add_waits(now, graph, why);
  if (!why.roots.empty()) {
    why.verdict = verdict_of(why.roots, patience);
    if (why.verdict == Verdict::waits) {
      why.summary = fmt::format("nothing has moved for {}; the job counts as hung after {}",
                                seconds_text(why.idle_s), seconds_text(patience.wait_s));
    }
    return;
  }
  if (!still || !view.is_over) {
    why.verdict = Verdict::well;
    why.summary = summary_of_well(now);
    return;
  }
  why.verdict = Verdict::unknown;
  why.summary = fmt::format("nothing has moved for {}, but no actor is known that others wait for",
                            seconds_text(why.idle_s));
  why.fix = fix_of_unknown(now);
}

}  // namespace

Why explain(const Snapshot& before, const Snapshot& now, const WhyOptions& options) {
  Why why{.job = now.job, .name = now.header.name, .idle_s = idle_s(now)};
  if (!now.no_control.empty() && now.live && now.held) {
    why.remarks.push_back(
        "epochs can't be read, so only the waits that the board shows are known: " +
        now.no_control);
  }
  if (now.control && now.arenas_named) why.kept_step = now.control->common_step();
  // A trainer that lives may be in a callback after all loops have ended.
  const bool lives = now.live && now.held && waits_for_callback(now);
  if (now.end && !lives) {
    explain_end(now, why);
  } else if (!now.held) {
    explain_lost(now, why);
  } else if (has_moments(before, now)) {
    explain_living(before, without_moments(before, now), options, why);
  } else {
    explain_living(before, now, options, why);
  }
  add_fixes(why.roots, now);
  return why;
}

Why explain_after_hang(const Snapshot& end, const Snapshot& hang) {
  const Why ended = explain(end, end);
  Why why = explain(hang, hang);
  if (ended.verdict == Verdict::failed || why.roots.empty()) {
    why.verdict = ended.verdict;
  } else if (why.verdict == Verdict::waits) {
    why.verdict = Verdict::hung;  // the trainer wrote the record only after its patience was over
  }
  for (Root& root : why.roots) {  // the processes are gone now
    const bool acts_on_it = root.cause == Cause::stopped || root.cause == Cause::frozen ||
                            root.cause == Cause::held || root.cause == Cause::busy;
    if (acts_on_it) root.fix = "while the hang lasts: " + root.fix;
  }
  why.roots.insert(why.roots.end(), ended.roots.begin(), ended.roots.end());
  why.summary = ended.summary;
  why.remarks.push_back("this was recorded while the job hung, before it ended");
  return why;
}

Why explain_ended(const Snapshot& end) {
  const std::optional<Snapshot> hang = JobReader::read_hang(end.header.run_dir);
  return hang ? explain_after_hang(end, *hang) : explain(end, end);
}

std::vector<HostPid> worth_a_sight(const Snapshot& before, const Snapshot& now) {
  std::vector<HostPid> worth;
  for (const Root& root : explain(before, now).roots) {
    const bool dead = root.cause == Cause::killed || root.cause == Cause::lost;
    if (dead) continue;
    std::vector<int> own = root.pids;  // in these roots, workers that look alike share a root
    own.push_back(root.pid);
    for (const int pid : own) {
      const HostPid id{std::max(root.host, 0), pid};
      if (pid > 0 && !std::ranges::count(worth, id)) worth.push_back(id);
    }
  }
  return worth;
}

}  // namespace weft
