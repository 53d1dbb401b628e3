#include "inspect/why/explain_root.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "inspect/why/hang.hpp"
#include "inspect/why/stack_places.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

HostPid id_of(const Root& root) { return {std::max(root.host, 0), root.pid}; }

/// Returns the part of one core that a process or its thread used between the snapshots, in
/// percent; -1 if unknown.
int core_percent(const RootView& view, const auto* then, const auto* now) {
  const double ns = static_cast<double>(view.now.at_ns - view.before.at_ns);
  if (then == nullptr || now == nullptr || ns <= 0 || now->core_ns < then->core_ns) return -1;
  const double part = static_cast<double>(now->core_ns - then->core_ns) / ns;
  return static_cast<int>(std::min(1.0, part) * 100 + 0.5);
}

int core_percent(const RootView& view, HostPid id, int tid) {
  const ProcessState* before = view.before.process(id);
  const ProcessState* now = view.now.process(id);
  if (before == nullptr || now == nullptr) return -1;
  return core_percent(view, before->thread(tid), now->thread(tid));
}

const ThreadSight* sight_of(const Snapshot& snapshot, HostPid id, int tid) {
  const ProcessSight* process = snapshot.sight(id);
  if (process == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      process->threads, [&](const ThreadSight& sight) { return sight.stack.tid == tid; });
  return found == process->threads.end() ? nullptr : &*found;
}

/// Returns the thread that holds the mutex for which the loop's thread waits, if that thread in
/// turn waits, directly or not, for the loop's thread. Returns 0 if there is no such circle.
int holder_in_circle(const Snapshot& snapshot, HostPid id, int tid) {
  std::set<int> seen;
  int owner = 0;
  for (int at = tid; at != 0 && seen.insert(at).second;) {
    const ThreadSight* sight = sight_of(snapshot, id, at);
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

/// Returns the worker's chip that has made the most calls; -1 if no chip has made a call.
int furthest_chip(const Snapshot& snapshot, int worker) {
  int furthest = -1;
  for (const ActorRow& row : snapshot.rows) {
    if (row.kind != ActorKind::device || row.worker != worker) continue;
    if (call_number(snapshot, row.chip) > call_number(snapshot, furthest)) furthest = row.chip;
  }
  return furthest;
}

/// Returns the first wait of another worker's chip for this worker, or for one of this worker's
/// chips.
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
    if (awaited > own) text += fmt::format("; never reached #{}", awaited);
  }
  root.notes.push_back({row->in_collective ? "in" : "after", std::move(text)});
}

/// Returns what a loop does that isn't in its own code.
std::string doing_of(const RootView& view, const ActorRow& row) {
  switch (row.state) {
    case ActorState::compiling: return "compiles a program";
    case ActorState::saving: return "saves a checkpoint";
    case ActorState::loading:
      return row.inside.empty()
                 ? "waits for a batch of a DeviceLoader"
                 : fmt::format("waits for item {} of {}", row.inside_number, row.inside);
    case ActorState::admission: return "waits until its program is admitted";
    case ActorState::lease: return "waits until the trainer grants a step";
    case ActorState::commands: return "waits for a command (ctx.wait_commands())";
    case ActorState::absent:
    case ActorState::starting:
    case ActorState::joining: return "hasn't joined yet";
    default: break;
  }
  // A loop that only reports renews since_ns at each report, but not moved_ns.
  constexpr std::int64_t kTurnNs = 1'000'000'000;
  const bool turns = row.moved_ns != 0 && row.since_ns - row.moved_ns > kTurnNs;
  if (turns || row.state == ActorState::reporting) {
    return turns ? "reports again and again" : "reports";
  }
  // On one host, a process without a state has ended; on others, its state may be unknown.
  const bool is_seen = view.now.hidden.empty() && view.now.header.num_hosts == 1;
  return is_seen || view.now.process(row) != nullptr
             ? "in its own code"
             : "in its own code or stopped (its process can't be seen from here),";
}

/// Returns a text such as " of worker 1", from the trainer's log record of the lost process.
/// Returns "" if the process isn't one of the job's, or if the record was already overwritten.
std::string name_of_gone(const Snapshot& now, int pid) {
  const std::string mark = fmt::format(" (pid {})", pid);
  for (const EventRing& ring : now.rings) {
    if (ring.worker != -1) continue;
    for (const Event& event : ring.events) {
      const auto at = event.text.find(mark);
      const auto name = event.text.rfind("worker ", at);
      if (event.kind != EventKind::log || at == event.text.npos || name == event.text.npos)
        continue;
      return fmt::format(" of {}", event.text.substr(name, at - name));
    }
  }
  return {};
}

/// Explains a thread that sleeps outside of weft: sets the root's cause and texts.
void explain_thread(Root& root, const RootView& view, std::string doing) {
  root.mutex_owner = holder_in_circle(view.now, id_of(root), root.tid);
  root.doing = std::move(doing);
  const ProcessState* process = view.now.process(id_of(root));
  if (root.mutex_owner != 0) {
    root.cause = Cause::deadlock;
    root.more =
        fmt::format(": waits for a mutex that {} holds",
                    root.mutex_owner == root.tid ? "its own thread" : "a thread that waits for it");
    return;
  }
  root.cause = Cause::busy;
  const ThreadState* thread = process != nullptr ? process->thread(root.tid) : nullptr;
  if (process != nullptr && process->child != 0) {
    root.doing = "waits for its child";
    root.more = fmt::format(" (pid {}), which has neither called exec nor ended", process->child);
    return;
  }
  const bool in_device = process != nullptr && process->in_device();
  if (in_device || (thread != nullptr && thread->state == 'D')) {
    const std::string& wchan = in_device ? process->wchan : thread->wchan;
    const std::string in = wchan.empty() ? "" : " in " + wchan;
    if (!view.is_over) {  // a short wait for a file is normal; only a long one is a cause
      root.more = ", waits for a disk or a device" + in;
      return;
    }
    root.cause = Cause::device;
    root.doing = "waits for a disk or a device" + in;
    return;
  }
  const ThreadSight* sight = sight_of(view.now, id_of(root), root.tid);
  if (sight != nullptr && !sight->file_lock.file.empty()) {
    const FileLockWait& lock = sight->file_lock;
    root.more = fmt::format(", waits for the lock of {}", lock.file);
    if (lock.holder > 0) {
      root.more += fmt::format(", which {} (pid {}) holds", lock.holder_name, lock.holder);
    }
    return;
  }
  if (sight != nullptr && sight->futex.owner_is_gone) {
    root.cause = Cause::deadlock;
    root.mutex_owner = sight->futex.mutex_owner;
    root.more =
        fmt::format(": waits for a mutex whose owner, thread {}{}, is gone and left it locked",
                    root.mutex_owner, name_of_gone(view.now, root.mutex_owner));
    root.fix =
        "unlock the mutex before its owner ends; if processes share the mutex, make it robust "
        "(pthread_mutexattr_setrobust), and take it over at EOWNERDEAD";
    return;
  }
  if (sight != nullptr && sight->futex.mutex_owner != 0) {
    root.more = fmt::format(", waits for a mutex that thread {} holds", sight->futex.mutex_owner);
    return;
  }
  if (thread != nullptr && thread->state == 'S' && !thread->wchan.empty()) {
    root.more = fmt::format(", sleeps in {}", thread->wchan);
  } else {
    root.core_percent = core_percent(view, id_of(root), root.tid);
  }
}

/// Returns the first of the process's chip threads that runs; 0 if none runs.
int running_chip_thread(const Snapshot& snapshot, HostPid id) {
  const ProcessState* process = snapshot.process(id);
  if (process == nullptr) return 0;
  for (const ThreadState& thread : process->threads) {
    const bool runs = thread.state == 'R' || thread.state == 'D';
    if (thread.name.starts_with("chip ") && runs) return thread.tid;
  }
  return 0;
}

/// Names the program that a chip loads or runs.
void add_program(Root& root, const ActorRow& row) {
  if (row.kind != ActorKind::device || row.source.empty()) return;
  root.notes.push_back({"for", row.source});
}

/// Explains a loop that compiles, or chips that load the plan. Returns false if neither happens.
bool explain_compiling(Root& root, const RootView& view, const ActorRow& loop) {
  const ActorRow* row = root.chips.empty() ? &loop : view.now.chip(root.chips.front());
  if (row == nullptr || row->state != ActorState::compiling) return false;
  const bool is_loop = row->kind == ActorKind::worker;
  root.cause = is_loop ? Cause::compiling : Cause::loading;
  root.tid = row->tid;
  root.doing = is_loop ? "compiles a program" : "loads the plan of a program";
  // The compiler of a chip's programs may use threads of its own.
  root.core_percent =
      is_loop ? core_percent(view, id_of(root), root.tid)
              : core_percent(view, view.before.process(id_of(root)), view.now.process(id_of(root)));
  // On a loaded machine a thread may get no core for longer than the time between two snapshots.
  root.works = root.core_percent > 0 || compiles(view.now, *row);
  add_program(root, *row);
  return true;
}

void add_place(Root& root, const RootView& view, int worker) {
  add_stack(root, view.now);
  const ActorRow* row = view.now.worker(worker);
  if (row != nullptr && !row->source.empty()) {
    root.notes.push_back({"line", row->source + ", where it last called weft"});
  }
  add_last_call(root, view, worker, wait_from_outside(view, worker));
  add_locks(root, view);
}

}  // namespace

int shown_host(const Snapshot& snapshot, int worker) {
  return snapshot.header.num_hosts == 1 ? -1 : snapshot.header.host_of(worker);
}

void add_stack(Root& root, const Snapshot& snapshot) {
  const ThreadSight* sight = sight_of(snapshot, id_of(root), root.tid);
  if (sight == nullptr) return;
  root.stack = users_part(sight->stack.frames);
  if (!root.stack.empty()) {
    root.notes.push_back({"at", to_text(root.stack)});
  } else if (!sight->stack.why_not.empty()) {
    root.notes.push_back({"stack", sight->stack.why_not});
  }
}

void add_locks(Root& root, const RootView& view) {
  const int node = root.workers.empty() ? 0 : node_of_worker(root.workers.front());
  for (const Wait& wait : view.graph.waits()) {
    if (!wait.is_lock || wait.to != node) continue;
    root.notes.push_back({"holds", fmt::format("{}, for which {} waits", wait.on,
                                               name_of_node(view.now, wait.from))});
  }
}

bool explain_frozen(Root& root, const ProcessState* process, bool lost) {
  if (lost || process == nullptr || process->gone()) {
    if (!lost && process == nullptr) return false;
    root.cause = Cause::lost;
    root.headline = fmt::format("{} ({}), its process is gone", root.actor, pid_text(root));
    if (root.since_s >= 0) root.headline += ", " + seconds_text(root.since_s);
  } else if (process->held()) {
    root.cause = Cause::held;
    root.doing = fmt::format("in {} (pid {})", process->tracer_name, process->tracer);
    root.tracer = process->tracer;
    root.fix = fmt::format("continue or detach the process in {}", process->tracer_name);
  } else if (process->in_freezer()) {
    root.cause = Cause::frozen;
    root.doing = "frozen by the cgroup " + process->frozen_by;
    const bool is_first_version = process->frozen_by.find("/freezer/") != std::string::npos;
    root.fix = fmt::format("echo {} > {}/{}", is_first_version ? "THAWED" : "0", process->frozen_by,
                           is_first_version ? "freezer.state" : "cgroup.freeze");
  } else if (process->stopped()) {
    root.cause = Cause::stopped;
  } else {
    return false;
  }
  return true;
}

Root explain_worker(const RootView& view, int worker, const std::vector<int>& chips) {
  Root root{.actor = fmt::format("worker {}", worker), .workers = {worker}, .chips = chips};
  const ActorRow* row = view.now.worker(worker);
  if (row == nullptr) {
    root.headline = root.actor + ": its row of the board can't be read";
    return root;
  }
  root.pid = row->pid;
  root.pids = {row->pid};
  root.host = shown_host(view.now, worker);
  root.tid = row->state == ActorState::loading && row->inside_tid != 0 ? row->inside_tid : row->tid;
  root.step = row->step;
  root.since_s = idle_s(view.now, worker);
  const ProcessState* process = view.now.process(*row);
  if (process != nullptr) {
    root.process = describe(*process);
    root.wchan = process->wchan;
  }
  const bool frozen = is_frozen(view.now, worker);
  if (frozen) {
    root.chips.clear();
    explain_frozen(root, process, is_lost(row->state));
    if (row->state == ActorState::host_lost) {
      root.headline = fmt::format("worker {}, {}", worker, row->last_error);
      root.fix =
          fmt::format("start the program again as host {}, as it was started before", root.host);
    }
    add_place(root, view, worker);
    return root;
  }
  if (!row->last_error.empty()) {
    root.cause = Cause::failed;
    root.chips.clear();
    root.headline = fmt::format("worker {} ({}), step {}: {}", worker, pid_text(root), row->step,
                                row->last_error);
    add_place(root, view, worker);
    return root;
  }
  if (!chips.empty()) {
    root.actor = fmt::format("chip{} {} of worker {}", chips.size() == 1 ? "" : "s",
                             ranges_text(chips), worker);
    root.tid = running_chip_thread(view.now, id_of(root));
  }
  if (!explain_compiling(root, view, *row)) {
    const ActorRow* chip = chips.empty() ? nullptr : view.now.chip(chips.front());
    const bool runs_program = chip != nullptr && !chip->source.empty();
    explain_thread(root, view,
                   chips.empty()  ? doing_of(view, *row)
                   : runs_program ? "runs a program"
                                  : "in its own code");
    if (runs_program) add_program(root, *chip);
    if (chips.empty()) explain_rows(root, view.now.streams, *row);
  }
  add_place(root, view, worker);
  return root;
}

Root explain_trainer(const RootView& view) {
  Root root{.actor = "trainer", .pid = view.now.header.trainer_pid};
  root.pids = {root.pid};
  root.host = shown_host(view.now, -1);
  const ActorRow* row = view.now.trainer();
  const bool calls_back = row != nullptr && row->inside_since_ns != 0;
  root.tid = calls_back ? row->inside_tid : row != nullptr && row->tid != 0 ? row->tid : root.pid;
  const ProcessState* process = view.now.process(id_of(root));
  if (process != nullptr) root.process = describe(*process);
  if (process != nullptr && process->frozen()) {
    root.since_s = idle_s(view.now);
    explain_frozen(root, process, false);
  } else if (calls_back) {
    root.since_s = std::max(0.0, view.now.seconds_since(row->inside_since_ns));
    explain_thread(root, view, "in " + row->inside);
    if (root.cause == Cause::busy) root.cause = Cause::blocked;
  } else {
    root.since_s = idle_s(view.now);
    explain_thread(root, view, "doesn't answer");
  }
  add_stack(root, view.now);
  add_locks(root, view);
  return root;
}

}  // namespace weft
