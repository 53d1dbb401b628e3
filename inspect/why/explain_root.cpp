#include "inspect/why/explain_root.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/why/stack_places.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// Since one of the worker's actors has last entered a state.
double seconds_still(const Snapshot& snapshot, int worker) {
  std::int64_t last = 0;
  for (const ActorRow& row : snapshot.rows) {
    if (row.worker == worker && row.kind != ActorKind::trainer) {
      last = std::max(last, row.since_ns);
    }
  }
  return last == 0 ? -1 : std::max(0.0, snapshot.seconds_since(last));
}

/// Part of one core that a thread had between the looks, in percent; -1: unknown.
int core_percent(const RootView& view, int pid, int tid) {
  const ProcessState* before = view.before.process(pid);
  const ProcessState* now = view.now.process(pid);
  const double ns = static_cast<double>(view.now.at_ns - view.before.at_ns);
  if (before == nullptr || now == nullptr || ns <= 0) return -1;
  const ThreadState* then = before->thread(tid);
  const ThreadState* thread = now->thread(tid);
  if (then == nullptr || thread == nullptr || thread->core_ns < then->core_ns) return -1;
  const double part = static_cast<double>(thread->core_ns - then->core_ns) / ns;
  return static_cast<int>(std::min(1.0, part) * 100 + 0.5);
}

const ThreadSight* sight_of(const Snapshot& snapshot, int pid, int tid) {
  const ProcessSight* process = snapshot.sight(pid);
  if (process == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      process->threads, [&](const ThreadSight& sight) { return sight.stack.tid == tid; });
  return found == process->threads.end() ? nullptr : &*found;
}

/// The thread whose mutex the loop's thread waits for, if that one waits for the loop's, directly
/// or not; 0: there is no such circle.
int holder_in_circle(const Snapshot& snapshot, int pid, int tid) {
  std::set<int> seen;
  int owner = 0;
  for (int at = tid; at != 0 && seen.insert(at).second;) {
    const ThreadSight* sight = sight_of(snapshot, pid, at);
    if (sight == nullptr) return 0;
    const int next = sight->futex.mutex_owner != 0 ? sight->futex.mutex_owner : sight->futex.joins;
    if (sight->futex.mutex_owner != 0) owner = sight->futex.mutex_owner;
    if (seen.contains(next)) return owner;
    at = next;
  }
  return 0;
}

std::uint64_t call_number(const Snapshot& snapshot, int chip) {
  const auto index = static_cast<std::size_t>(chip);
  if (!snapshot.control || chip < 0 || index >= snapshot.control->chips.size()) return 0;
  const auto& call = snapshot.control->chips[index].call;
  return call ? call->number : 0;
}

/// The chip of the worker that has called the most; -1: none has called anything.
int furthest_chip(const Snapshot& snapshot, int worker) {
  int furthest = -1;
  for (const ActorRow& row : snapshot.rows) {
    if (row.kind != ActorKind::device || row.worker != worker) continue;
    if (call_number(snapshot, row.chip) > call_number(snapshot, furthest)) furthest = row.chip;
  }
  return furthest;
}

void add_stack(Root& root, const Snapshot& snapshot) {
  const ThreadSight* sight = sight_of(snapshot, root.pid, root.tid);
  if (sight == nullptr) return;
  root.stack = users_part(sight->stack.frames);
  if (!root.stack.empty()) {
    root.notes.push_back({"at", to_text(root.stack)});
  } else if (!sight->stack.why_not.empty()) {
    root.notes.push_back({"stack", sight->stack.why_not});
  }
}

/// The first chip of another worker that waits for this one, or for one of its chips.
const Wait* wait_from_outside(const RootView& view, int worker) {
  for (const Wait& wait : view.graph.waits()) {
    const int from = worker_of_node(view.now, wait.from);
    const bool is_chip = wait.from > view.now.header.num_workers;
    if (is_chip && from != worker && worker_of_node(view.now, wait.to) == worker) return &wait;
  }
  return nullptr;
}

void add_last_call(Root& root, const RootView& view, int worker, const Wait* outside) {
  const int chip = furthest_chip(view.now, worker);
  if (chip < 0) return;
  root.collective = last_call(view.now, chip);
  if (root.collective.empty()) return;
  const ActorRow* row = view.now.chip(chip);
  std::string text = fmt::format("{}, step {}", root.collective, row->step);
  const std::uint64_t own = call_number(view.now, chip);
  if (outside != nullptr) {
    const std::uint64_t awaited =
        call_number(view.now, outside->from - 1 - view.now.header.num_workers);
    if (awaited > own) text += fmt::format("; never came to #{}", awaited);
  }
  root.notes.push_back({row->in_collective ? "in" : "after", std::move(text)});
}

void add_waiters(Root& root, const RootView& view, const std::vector<int>& nodes,
                 const Wait* outside) {
  std::vector<int> workers;
  for (const int node : view.graph.waiters_of(nodes)) {
    const int worker = worker_of_node(view.now, node);
    const bool is_chip = node > view.now.header.num_workers;
    if (!is_chip || std::ranges::count(root.workers, worker)) continue;
    root.waiters.push_back(node - 1 - view.now.header.num_workers);
    workers.push_back(worker);
  }
  if (root.waiters.empty()) return;
  std::string text = fmt::format("{} chip{} of {}", root.waiters.size(),
                                 root.waiters.size() == 1 ? "" : "s", workers_text(workers));
  if (outside != nullptr) {
    const ActorRow* row = view.now.chip(outside->from - 1 - view.now.header.num_workers);
    text += fmt::format(" in {}", outside->on);
    if (row != nullptr) text += fmt::format(", step {}", row->step);
  }
  root.notes.push_back({"waits", std::move(text)});
}

/// What a loop does that is in no code of its own.
std::string_view work_of(ActorState state) {
  switch (state) {
    case ActorState::compiling: return "compiles";
    case ActorState::saving: return "saves a checkpoint";
    case ActorState::loading: return "waits for a batch of a DeviceLoader";
    case ActorState::admission: return "waits until its program is admitted";
    case ActorState::lease: return "waits for the grant of a step";
    case ActorState::reporting: return "reports";
    case ActorState::absent:
    case ActorState::starting:
    case ActorState::joining: return "hasn't joined yet";
    default: return "";
  }
}

/// Cause, headline and mend of a process that doesn't go on by itself; false: it does.
bool explain_frozen(Root& root, const ProcessState* process, bool lost) {
  if (lost || process == nullptr || process->gone()) {
    if (!lost && process == nullptr) return false;
    root.cause = Cause::lost;
    root.headline += ", its process is gone";
  } else if (process->held()) {
    root.cause = Cause::held;
    root.headline += fmt::format(", in {} (pid {})", process->tracer_name, process->tracer);
    root.tracer = process->tracer;
    root.mend = fmt::format("continue or detach it in {}", process->tracer_name);
  } else if (process->stopped()) {
    root.cause = Cause::stopped;
    root.mend = fmt::format("kill -CONT {}", process->pid);
  } else if (process->in_device()) {
    root.cause = Cause::device;
    root.headline += ", waits for a disk or a device";
    if (!process->wchan.empty()) root.headline += fmt::format(" in {}", process->wchan);
  } else {
    return false;
  }
  if (root.since_s >= 0) root.headline += fmt::format(", {}", seconds_text(root.since_s));
  return true;
}

void explain_thread(Root& root, const RootView& view, std::string_view work) {
  root.mutex_owner = holder_in_circle(view.now, root.pid, root.tid);
  const ProcessState* process = view.now.process(root.pid);
  const ThreadState* thread = process != nullptr ? process->thread(root.tid) : nullptr;
  std::string since;
  if (root.since_s >= 0) since = fmt::format(" for {}", seconds_text(root.since_s));
  if (root.mutex_owner != 0) {
    root.cause = Cause::deadlock;
    root.headline += fmt::format(", {}{}: waits for a mutex that {} holds",
                                 work.empty() ? "in its own code" : work, since,
                                 root.mutex_owner == root.tid ? "its own thread"
                                                              : "a thread that "
                                                                "waits for it");
    return;
  }
  root.cause = Cause::busy;
  root.headline += fmt::format(", {}{}", work.empty() ? "in its own code" : work, since);
  const int percent = core_percent(view, root.pid, root.tid);
  if (thread != nullptr && thread->state == 'S' && !thread->wchan.empty()) {
    root.headline += fmt::format(", sleeps in {}", thread->wchan);
  } else if (percent >= 0) {
    root.headline += fmt::format(", {} % of a core", percent);
  }
}

std::string actor_text(const Root& root) {
  return root.pid > 0 ? fmt::format("{} (pid {})", root.actor, root.pid) : root.actor;
}

/// The first thread of the process's chips that runs; 0: none does.
int running_chip_thread(const Snapshot& snapshot, int pid) {
  const ProcessState* process = snapshot.process(pid);
  if (process == nullptr) return 0;
  for (const ThreadState& thread : process->threads) {
    if (thread.name.starts_with("chip ") && thread.state == 'R') return thread.tid;
  }
  return 0;
}

}  // namespace

Root explain_worker(const RootView& view, int worker, const std::vector<int>& chips) {
  Root root{.actor = fmt::format("worker {}", worker), .workers = {worker}, .chips = chips};
  const ActorRow* row = view.now.worker(worker);
  if (row == nullptr) {
    root.headline = root.actor + ", whose row of the board can't be read";
    return root;
  }
  root.pid = row->pid;
  root.tid = row->tid;
  root.step = row->step;
  root.since_s = seconds_still(view.now, worker);
  const ProcessState* process = view.now.process(row->pid);
  if (process != nullptr) {
    root.process = describe(*process);
    root.wchan = process->wchan;
  }
  const bool frozen = is_frozen(view.now, worker);
  if (!frozen && !chips.empty()) {
    root.actor = fmt::format("chip{} {} of worker {}", chips.size() == 1 ? "" : "s",
                             ranges_text(chips), worker);
    root.tid = running_chip_thread(view.now, row->pid);
  }
  root.headline = actor_text(root);
  std::vector<int> nodes{node_of_worker(worker)};
  for (const int chip : chips) nodes.push_back(node_of_chip(view.now, chip));
  const Wait* outside = wait_from_outside(view, worker);
  if (frozen) {
    explain_frozen(root, process, row->state == ActorState::lost);
  } else if (!row->last_error.empty()) {
    root.cause = Cause::failed;
    root.headline += fmt::format(", step {}: {}", row->step, row->last_error);
  } else {
    explain_thread(root, view, chips.empty() ? work_of(row->state) : "");
  }
  add_stack(root, view.now);
  if (!row->source.empty())
    root.notes.push_back({"line", row->source + ", where it last called weft"});
  add_last_call(root, view, worker, outside);
  add_waiters(root, view, nodes, outside);
  return root;
}

Root explain_trainer(const RootView& view) {
  Root root{.actor = "trainer", .pid = view.now.header.trainer_pid};
  root.headline = actor_text(root);
  const ProcessState* process = view.now.process(root.pid);
  root.tid = root.pid;
  if (process != nullptr) root.process = describe(*process);
  if (process == nullptr || !process->frozen()) {
    root.cause = Cause::busy;
    root.headline += process == nullptr ? "" : fmt::format(", {}", describe(*process));
  } else {
    explain_frozen(root, process, false);
  }
  add_stack(root, view.now);
  add_waiters(root, view, {0}, nullptr);
  return root;
}

Root explain_circle(const RootView& view, const std::vector<int>& nodes) {
  Root root{.cause = Cause::deadlock};
  std::set<std::string> calls;
  std::vector<std::string> names;
  for (const int node : nodes) {
    const int worker = worker_of_node(view.now, node);
    if (worker >= 0) root.workers.push_back(worker);
    names.push_back(name_of_node(view.now, node));
    if (node <= view.now.header.num_workers) continue;
    const int chip = node - 1 - view.now.header.num_workers;
    root.chips.push_back(chip);
    const ActorRow* row = view.now.chip(chip);
    if (row != nullptr) root.step = std::max(root.step, row->step);
    if (row == nullptr || !row->in_collective) continue;
    const std::string call = last_call(view.now, chip);
    if (!call.empty() && calls.insert(call).second) {
      root.notes.push_back({"calls", fmt::format("chip {}: {}", chip, call)});
    }
  }
  std::ranges::sort(root.workers);
  root.workers.erase(std::unique(root.workers.begin(), root.workers.end()), root.workers.end());
  root.since_s = seconds_still(view.now, root.workers.empty() ? -1 : root.workers.front());
  if (calls.size() > 1) root.cause = Cause::diverged;
  const bool all_chips = root.chips.size() == nodes.size();
  root.actor = all_chips ? fmt::format("chips {}", ranges_text(root.chips))
                         : fmt::format("{}", fmt::join(names, ", "));
  root.headline = fmt::format("{} wait for each other{}", root.actor,
                              calls.size() > 1 ? " in different collectives" : "");
  return root;
}

std::vector<Root> merged(std::vector<Root> roots) {
  std::vector<Root> result;
  for (Root& root : roots) {
    const auto same = std::ranges::find_if(result, [&](const Root& other) {
      return root.cause == Cause::deadlock && other.cause == root.cause && root.pid != 0 &&
             other.pid != 0 && to_text(other.stack) == to_text(root.stack);
    });
    if (same == result.end()) {
      result.push_back(std::move(root));
      continue;
    }
    same->workers.insert(same->workers.end(), root.workers.begin(), root.workers.end());
    same->since_s = std::min(same->since_s, root.since_s);
    same->actor = workers_text(same->workers);
    same->headline = fmt::format(
        "{}, in their own code for {}: each waits for a mutex that its own "
        "threads hold",
        same->actor, seconds_text(same->since_s));
  }
  return result;
}

}  // namespace weft
