#include "inspect/views/actor_view.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "inspect/snapshot/step_rate.hpp"
#include "inspect/why/hang.hpp"
#include "inspect/why/wait_graph.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// Returns the state that the system shows for the process, if it overrules the state in the row;
/// otherwise "".
std::string overruled(const Snapshot& snapshot, const ActorRow& row) {
  const bool over = row.state == ActorState::ended || row.state == ActorState::absent;
  const ProcessState* process = snapshot.process(row);
  if (process == nullptr || over) return {};
  if (process->gone()) return "gone";
  if (process->held()) return "held";
  return process->stopped() ? "stopped" : "";
}

char letter_of(const std::string& state) {
  if (state == "stopped") return 'T';
  if (state == "held") return 'D';
  if (state == "gone" || state == "lost" || state == "host lost") return 'X';
  if (state == "failed") return '!';
  if (state == "waiting") return 'w';
  if (state == "running") return 'r';
  if (state == "ended") return 'e';
  return state == "absent" ? '-' : '.';
}

/// Returns whether a loop waits for its chips although its row says that it runs.
bool waits_for_chips(const Snapshot& snapshot, const ActorRow& row) {
  if (row.kind != ActorKind::worker || row.state != ActorState::running) return false;
  bool some_waits = false;
  for (const ActorRow& chip : snapshot.rows) {
    if (chip.kind != ActorKind::device || chip.worker != row.worker) continue;
    if (chip.state == ActorState::running) return false;
    some_waits = some_waits || chip.state == ActorState::waiting;
  }
  return some_waits;
}

std::string state_of(const Snapshot& snapshot, const ActorRow& row) {
  std::string state = overruled(snapshot, row);
  if (!state.empty()) return state;
  return std::string(to_string(waits_for_chips(snapshot, row) ? ActorState::waiting : row.state));
}

std::string doing(const Snapshot& snapshot, const ActorRow& row) {
  if (!row.last_error.empty()) return row.last_error;
  if (row.inside_since_ns != 0 && !row.inside.empty()) {
    const std::string item =
        row.inside_number < 0 ? "" : fmt::format(", item {}", row.inside_number);
    return fmt::format("in {}{}", row.inside, item);
  }
  if (waits_for_chips(snapshot, row)) return "waits for its chips";
  if (row.kind != ActorKind::device || (row.collective == 0 && !row.in_collective)) return {};
  std::string call = last_call(snapshot, row.chip);
  if (call.empty()) call = fmt::format("#{} {}", row.collective, row.collective_name);
  return (row.in_collective ? "in " : "after ") + call;
}

/// Returns the core time of a chip's thread. For another actor, returns that of all threads of its
/// process.
std::optional<std::uint64_t> core_ns(const Snapshot& snapshot, const ActorRow& row) {
  const ProcessState* process = snapshot.process(row);
  if (process == nullptr || process->gone()) return {};
  if (row.kind != ActorKind::device) return process->core_ns;
  const ThreadState* thread = process->thread(row.tid);
  if (thread == nullptr) return {};
  return thread->core_ns;
}

std::optional<double> cores_since(const Snapshot& before, const Snapshot& now,
                                  const ActorRow& row) {
  const auto then_ns = core_ns(before, row);
  const auto now_ns = core_ns(now, row);
  const double seconds = now.seconds_since(before.at_ns);
  if (!then_ns || !now_ns || *now_ns < *then_ns || seconds <= 0) return {};
  return static_cast<double>(*now_ns - *then_ns) / 1e9 / seconds;
}

void add_waits(const Snapshot& snapshot, ActorView& actor) {
  const auto waits = std::ranges::find(snapshot.waits, actor.chip, &ChipWaits::chip);
  if (actor.chip < 0 || waits == snapshot.waits.end()) return;
  const LedgerSums sums = sum_up(waits->calls);
  if (sums.calls == 0) return;
  actor.came_last = static_cast<double>(sums.times_last) / static_cast<double>(sums.calls);
  actor.waited_s = static_cast<double>(sums.waited_ns) / 1e9;
}

/// Returns whether a callback of the trainer has lasted longer than the job's patience.
bool is_blocked(const Snapshot& snapshot) {
  return snapshot.live && snapshot.held && waits_for_callback(snapshot) &&
         callback_s(snapshot) > patience_s(snapshot);
}

JobView state_of_living(const Snapshot& snapshot) {
  JobView job{.state = std::string(to_string(snapshot.status)), .step = snapshot.step()};
  const auto any = [&](bool (ProcessState::*is)() const) {
    return std::ranges::any_of(snapshot.processes, is);
  };
  if (any(&ProcessState::held)) {
    job.state = "held";
  } else if (any(&ProcessState::stopped)) {
    job.state = "stopped";
  } else if (is_hung(snapshot)) {
    job.state = "hung";
  } else {
    job.steps_per_s = steps_per_second(snapshot);
    return job;
  }
  job.for_s = idle_s(snapshot);
  job.steps_per_s = 0;
  return job;
}

}  // namespace

const char* const kStateLetters =
    ". idle  r runs  w waits  e ended  T stopped  D in a debugger  X gone  ! failed  - absent";

std::vector<ActorView> view_actors(const Snapshot& snapshot, const Snapshot* before) {
  std::vector<ActorView> actors;
  for (const ActorRow& row : snapshot.rows) {
    ActorView actor{.node = row.index,
                    .name = name_of_node(snapshot, row.index),
                    .kind = std::string(to_string(row.kind)),
                    .worker = row.worker,
                    .chip = row.chip,
                    .pid = row.pid,
                    .state = state_of(snapshot, row),
                    .step = row.step,
                    .mailbox = row.mailbox,
                    .message = row.last_message,
                    .doing = doing(snapshot, row)};
    if (before != nullptr) actor.cores = cores_since(*before, snapshot, row);
    add_waits(snapshot, actor);
    actor.letter = letter_of(actor.state);
    if (row.since_ns != 0) actor.for_s = std::max(0.0, snapshot.seconds_since(row.since_ns));
    actors.push_back(std::move(actor));
  }
  return actors;
}

JobView view_job(const Snapshot& snapshot) {
  JobView job{.state = std::string(to_string(snapshot.status)), .step = snapshot.step()};
  const bool has_result = snapshot.end || !snapshot.live;
  if (!snapshot.held && (!snapshot.over() || !has_result)) {
    job.state = "dead";
  } else if (is_blocked(snapshot)) {
    job.state = "blocked";
    job.for_s = callback_s(snapshot);
  } else if (!snapshot.over()) {
    job = state_of_living(snapshot);
  }
  job.loss = loss_of(snapshot.metrics);
  return job;
}

std::string for_text(double seconds) { return seconds < 0 ? "" : seconds_text(seconds); }

std::string cpu_text(const ActorView& actor) {
  return actor.cores ? percent_text(*actor.cores) : "";
}
std::string came_last_text(const ActorView& actor) {
  return actor.came_last ? percent_text(*actor.came_last) : "";
}
std::string waits_text(const ActorView& actor) {
  return actor.waited_s ? time_text(*actor.waited_s) : "";
}
std::string rate_text(const JobView& job) {
  return job.steps_per_s ? per_second_text(*job.steps_per_s) : "";
}
std::string loss_text(const JobView& job) { return job.loss ? metric_text(*job.loss) : ""; }

}  // namespace weft
