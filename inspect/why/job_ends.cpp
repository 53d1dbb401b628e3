#include "inspect/why/job_ends.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "inspect/why/explain_root.hpp"
#include "inspect/why/stack_places.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// Returns whether a process that gets this signal has caused it by its own action.
bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGABRT;
}

Cause cause_of(const JobFailure& failure) {
  if (failure.code == "no_space") return Cause::no_space;
  if (failure.code == "program_divergence") return Cause::diverged;
  if (failure.code == "uneven_loops") return Cause::uneven;
  if (failure.signal != 0) return is_crash(failure.signal) ? Cause::crashed : Cause::killed;
  if (failure.code == "peer_lost" && failure.pid != 0) return Cause::lost;
  return Cause::failed;
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Root to_root(const JobFailure& failure, const Snapshot& now) {
  Root root{.cause = cause_of(failure),
            .actor = failure.worker >= 0 ? fmt::format("worker {}", failure.worker) : "the job",
            .pid = failure.pid,
            .step = failure.step,
            .collective = failure.collective,
            .signal = failure.signal};
  if (failure.worker >= 0) root.workers = {failure.worker};
  root.host = shown_host(now, failure.worker);
  root.headline = root.pid > 0 ? fmt::format("{} ({})", root.actor, pid_text(root)) : root.actor;
  if (root.pid > 0) root.pids = {root.pid};
  if (root.signal != 0) {
    root.headline += fmt::format(" by {}, step {}", signal_text(root.signal), root.step);
  } else {
    root.headline += fmt::format(", step {}", root.step);
  }
  root.notes.push_back({"says", failure.message});
  if (!failure.thrown_at.empty()) root.notes.push_back({"at", failure.thrown_at});
  if (!failure.collective.empty()) root.notes.push_back({"in", failure.collective});
  if (root.cause == Cause::no_space &&
      failure.message.find("/dev/shm/weft-") != std::string::npos) {
    root.fix =
        "weft sweep (removes what dead jobs left in /dev/shm); weft doctor says how to enlarge "
        "/dev/shm";
  }
  return root;
}

/// A line, and the workers whose loops were there when the job ended.
struct EndedAt {
  std::vector<int> workers{};
  std::uint64_t step = 0;  ///< step of the furthest worker
};

std::map<std::string, EndedAt> places_of(std::span<const ActorRow> rows) {
  std::map<std::string, EndedAt> places;
  for (const ActorRow& row : rows) {
    if (row.kind != ActorKind::worker || row.source.empty()) continue;
    EndedAt& place = places[row.source];
    place.workers.push_back(row.worker);
    place.step = std::max(place.step, row.step);
  }
  return places;
}

std::size_t size_of(const std::pair<const std::string, EndedAt>& entry) {
  return entry.second.workers.size();
}

/// Returns the smallest group of workers that was at another line than the others, if no other
/// group is as small; otherwise places.end().
auto find_apart(const std::map<std::string, EndedAt>& places) {
  if (places.size() < 2) return places.end();
  const auto least = std::ranges::min_element(places, {}, size_of);
  return std::ranges::count(places, size_of(*least), size_of) == 1 ? least : places.end();
}

/// Blames the workers that were at another line than the others, and lists all lines.
void compare_places(Root& root, const Snapshot& now) {
  const std::map<std::string, EndedAt> places = places_of(now.rows);
  if (places.size() < 2) return;
  const auto least = find_apart(places);
  const bool is_alone = least != places.end();
  const auto note = [&](const char* label, const auto& entry) {
    root.notes.push_back({label, fmt::format("{}: {}, step {}", workers_text(entry.second.workers),
                                             entry.first, entry.second.step)});
  };
  if (is_alone) {
    root.workers = least->second.workers;
    root.step = least->second.step;
    root.pids.clear();
    for (const int worker : root.workers) root.pids.push_back(now.worker(worker)->pid);
    root.pid = root.pids.front();
    root.host = shown_host(now, root.workers.front());
    root.actor = workers_text(root.workers);
    root.headline = root.actor;
    if (root.pids.size() == 1) root.headline += fmt::format(" ({})", pid_text(root));
    root.headline += fmt::format(", step {}: is at another line than the others", root.step);
    note("line", *least);
  }
  for (auto place = places.begin(); place != places.end(); ++place) {
    if (!is_alone || place != least) note(is_alone ? "others" : "line", *place);
  }
}

/// Adds the place of the crash, and the worker's last error before it.
void add_crash(Root& root, const Snapshot& now, const ActorRow& row) {
  const bool has_said = !row.last_error.empty() && row.last_error.find("SIG") != 0;
  if (has_said) root.notes.push_back({"threw", row.last_error});
  if (!has_said && !row.last_error.empty()) root.notes.push_back({"crash", row.last_error});
  if (!now.crash || now.crash->pid != root.pid) return;
  root.stack = users_part(now.crash->stack.frames);
  if (!root.stack.empty()) {
    root.notes.push_back({"at", to_text(root.stack)});
  } else {
    root.notes.push_back({"stack", now.crash->stack.why_not});
  }
}

/// Adds the other workers that threw, because the failure names only the first one.
void add_other_throws(Root& root, const Snapshot& now) {
  for (const ActorRow& row : now.rows) {
    if (row.kind != ActorKind::worker || std::ranges::count(root.workers, row.worker) != 0)
      continue;
    if (row.last_error.find(", thrown at ") == std::string::npos) continue;
    root.notes.push_back(
        {"also", fmt::format("worker {}, step {}: {}", row.worker, row.step, row.last_error)});
  }
}

/// Adds the calls of foreign code in which actors were when the trainer died.
void add_insides(Root& root, const Snapshot& now) {
  for (const ActorRow& row : now.rows) {
    if (row.inside_since_ns == 0) continue;
    const std::string since =
        now.live ? fmt::format(" for {}", seconds_text(now.seconds_since(row.inside_since_ns)))
                 : "";
    root.notes.push_back({"was", row.inside_number >= 0
                                     ? fmt::format("worker {} at item {} of {}{}", row.worker,
                                                   row.inside_number, row.inside, since)
                                     : fmt::format("the trainer in {}{}", row.inside, since)});
  }
}

}  // namespace

std::optional<int> find_worker_apart(std::span<const ActorRow> rows) {
  const std::map<std::string, EndedAt> places = places_of(rows);
  const auto apart = find_apart(places);
  if (apart == places.end() || size_of(*apart) != 1) return {};
  return apart->second.workers.front();
}

void explain_end(const Snapshot& now, Why& why) {
  const JobEnd& end = *now.end;
  if (!end.error || end.error->code == "cancelled") {
    why.verdict = Verdict::well;
    why.summary = end.error ? fmt::format("ended by {}", end.ended_by) : "ended well";
    if (!end.losses.empty()) why.summary += fmt::format(", after {} losses", end.losses.size());
    return;
  }
  why.verdict = Verdict::failed;
  Root root = to_root(*end.error, now);
  const ActorRow* row = root.workers.empty() ? nullptr : now.worker(root.workers.front());
  if (row != nullptr && root.step == 0) root.step = row->step;
  if (row != nullptr && root.cause == Cause::crashed) add_crash(root, now, *row);
  const std::size_t before = root.notes.size();
  if (root.cause == Cause::diverged) compare_places(root, now);
  if (root.cause == Cause::failed) add_other_throws(root, now);
  const bool is_placed = root.notes.size() != before || !end.error->thrown_at.empty();
  if (row != nullptr && !row->source.empty() && !is_placed) {
    root.notes.push_back({"line", row->source + ", where it last called weft"});
  }
  why.roots.push_back(std::move(root));
  if (!end.checkpoint.empty()) {
    why.roots.back().notes.push_back({"kept", "the checkpoint " + end.checkpoint});
  }
}

namespace {

Root lost_trainer(const Snapshot& now) {
  Root root{.cause = Cause::lost, .actor = "trainer", .pid = now.header.trainer_pid};
  root.pids = {root.pid};
  root.step = now.step();
  root.headline = fmt::format("trainer (pid {}), gone before the job ended", root.pid);
  std::int64_t last = 0;
  for (const ActorRow& row : now.rows) last = std::max(last, row.updated_ns);
  if (last != 0) {
    root.since_s = std::max(0.0, now.seconds_since(last));
    root.headline += fmt::format(", last seen {} ago", seconds_text(root.since_s));
  }
  if (now.rescue) {
    const RescueNote& note = *now.rescue;
    root.notes.push_back({"kept", fmt::format("step {}, rescued to {}", note.step, note.path)});
    if (!note.continued_by.empty()) {
      root.notes.push_back({"job", fmt::format("{} continued at that step", note.continued_by)});
    }
    root.fix =
        note.continued_by.empty()
            ? fmt::format("start a job with run.resume = \"{}\", or weft launch --resume {}",
                          note.path, note.path)
            : fmt::format("nothing to do: weft inspect why {} explains the job that continued",
                          note.continued_by);
  } else if (now.control && now.arenas_named) {
    root.notes.push_back(
        {"kept", fmt::format("step {}, complete on {} chips", now.control->common_step(),
                             now.control->chips.size())});
    root.fix = fmt::format("weft rescue {}", now.job);
  } else {
    root.notes.push_back({"kept",
                          "nothing in memory: the job didn't keep its state for a rescue "
                          "(run.keep_for_rescue_s); resume from its last checkpoint"});
    if (now.live) root.fix = fmt::format("weft sweep {}", now.job);
  }
  add_insides(root, now);
  return root;
}

/// Explains an end that only the board shows. No file could be written, perhaps because the disk
/// was full.
Root failed_on_board(const Snapshot& now) {
  Root root{.cause = Cause::failed, .actor = "the job", .pid = 0, .step = now.step()};
  root.headline = fmt::format("the job, step {}", root.step);
  const ActorRow* trainer = now.trainer();
  if (trainer != nullptr && !trainer->last_error.empty()) {
    root.notes.push_back({"says", trainer->last_error});
  }
  return root;
}

}  // namespace

void explain_lost(const Snapshot& now, Why& why) {
  why.verdict = Verdict::failed;
  why.roots.push_back(now.status == JobStatus::failed ? failed_on_board(now) : lost_trainer(now));
  if (now.over())
    why.remarks.push_back("there is no result.json, the last file that the trainer writes");
}

}  // namespace weft
