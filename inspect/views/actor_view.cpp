#include "inspect/views/actor_view.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "inspect/why/hang.hpp"
#include "inspect/why/wait_graph.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// What the system says of the process, where that overrules what the row says; empty: it doesn't.
std::string overruled(const Snapshot& snapshot, const ActorRow& row) {
  const bool over = row.state == ActorState::ended || row.state == ActorState::absent;
  const ProcessState* process = snapshot.process(row.pid);
  if (process == nullptr || over) return {};
  if (process->gone()) return "gone";
  if (process->held()) return "held";
  return process->stopped() ? "stopped" : "";
}

char letter_of(const std::string& state) {
  if (state == "stopped") return 'T';
  if (state == "held") return 'D';
  if (state == "gone" || state == "lost") return 'X';
  if (state == "failed") return '!';
  if (state == "waiting") return 'w';
  if (state == "running") return 'r';
  if (state == "ended") return 'e';
  return state == "absent" ? '-' : '.';
}

std::string doing(const Snapshot& snapshot, const ActorRow& row) {
  if (!row.last_error.empty()) return row.last_error;
  if (row.kind != ActorKind::device || row.collective == 0) return {};
  std::string call = last_call(snapshot, row.chip);
  if (call.empty()) call = fmt::format("#{} {}", row.collective, row.collective_name);
  return (row.in_collective ? "in " : "after ") + call;
}

}  // namespace

const char* const kStateLetters =
    ". idle  r runs  w waits  e ended  T stopped  D in a debugger  X gone  ! failed  - absent";

std::vector<ActorView> view_actors(const Snapshot& snapshot) {
  std::vector<ActorView> actors;
  for (const ActorRow& row : snapshot.rows) {
    ActorView actor{.node = row.index,
                    .name = name_of_node(snapshot, row.index),
                    .kind = std::string(to_string(row.kind)),
                    .worker = row.worker,
                    .chip = row.chip,
                    .pid = row.pid,
                    .state = overruled(snapshot, row),
                    .step = row.step,
                    .mailbox = row.mailbox,
                    .message = row.last_message,
                    .doing = doing(snapshot, row)};
    if (actor.state.empty()) actor.state = to_string(row.state);
    actor.letter = letter_of(actor.state);
    if (row.since_ns != 0) actor.for_s = std::max(0.0, snapshot.seconds_since(row.since_ns));
    actors.push_back(std::move(actor));
  }
  return actors;
}

JobView view_job(const Snapshot& snapshot) {
  JobView job{.state = std::string(to_string(snapshot.status)), .step = snapshot.step()};
  const bool has_result = snapshot.end || !snapshot.live;
  if (!snapshot.held && !has_result) return {.state = "dead", .step = job.step};
  if (snapshot.live && snapshot.held && waits_for_callback(snapshot) &&
      callback_s(snapshot) > patience_s(snapshot)) {
    return {.state = "blocked", .for_s = callback_s(snapshot), .step = job.step};
  }
  if (snapshot.over()) return job;
  if (!snapshot.held) return {.state = "dead", .step = job.step};
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
    return job;
  }
  job.for_s = idle_s(snapshot);
  return job;
}

std::string for_text(double seconds) { return seconds < 0 ? "" : seconds_text(seconds); }

}  // namespace weft
