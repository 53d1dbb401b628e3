#include "inspect/why/job_ends.hpp"

#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "inspect/why/words.hpp"

namespace weft {
namespace {

Cause cause_of(const JobFailure& failure) {
  if (failure.code == "no_space") return Cause::no_space;
  if (failure.code == "program_divergence") return Cause::diverged;
  if (failure.code == "uneven_loops") return Cause::uneven;
  if (failure.signal != 0) return Cause::killed;
  if (failure.code == "peer_lost" && failure.pid != 0) return Cause::lost;
  return Cause::failed;
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Root to_root(const JobFailure& failure) {
  Root root{.cause = cause_of(failure),
            .actor = failure.worker >= 0 ? fmt::format("worker {}", failure.worker) : "the job",
            .pid = failure.pid,
            .step = failure.step,
            .collective = failure.collective,
            .signal = failure.signal};
  if (failure.worker >= 0) root.workers = {failure.worker};
  root.headline = root.pid > 0 ? fmt::format("{} (pid {})", root.actor, root.pid) : root.actor;
  if (root.signal != 0) {
    root.headline += fmt::format(" by {}, step {}", signal_text(root.signal), root.step);
  } else {
    root.headline += fmt::format(", step {}", root.step);
  }
  root.notes.push_back({"says", failure.message});
  if (!failure.collective.empty()) root.notes.push_back({"in", failure.collective});
  if (root.cause == Cause::no_space) {
    root.mend =
        "weft sweep (removes what dead jobs left in /dev/shm); weft doctor says how to "
        "enlarge it";
  }
  return root;
}

}  // namespace

void explain_end(const Snapshot& now, Why& why) {
  if (!now.end) {
    why.verdict = now.status == JobStatus::succeeded ? Verdict::well : Verdict::failed;
    why.summary = fmt::format("it has {}", to_string(now.status));
    return;
  }
  const JobEnd& end = *now.end;
  if (!end.error || end.error->code == "cancelled") {
    why.verdict = Verdict::well;
    why.summary = end.error ? fmt::format("ended by {}", end.ended_by) : "ended well";
    if (!end.losses.empty()) why.summary += fmt::format(", after {} losses", end.losses.size());
    return;
  }
  why.verdict = Verdict::failed;
  Root root = to_root(*end.error);
  const ActorRow* row = root.workers.empty() ? nullptr : now.worker(root.workers.front());
  if (row != nullptr && !row->source.empty()) {
    root.notes.push_back({"line", row->source + ", where it last called weft"});
  }
  why.roots.push_back(std::move(root));
  if (!end.checkpoint.empty()) {
    why.roots.back().notes.push_back({"kept", "the checkpoint " + end.checkpoint});
  }
}

Root explain_lost_trainer(const Snapshot& now) {
  Root root{.cause = Cause::lost, .actor = "trainer", .pid = now.header.trainer_pid};
  root.step = now.step();
  root.headline = fmt::format("trainer (pid {}), gone without an end of the job", root.pid);
  std::int64_t last = 0;
  for (const ActorRow& row : now.rows) last = std::max(last, row.updated_ns);
  if (last != 0) {
    root.since_s = std::max(0.0, now.seconds_since(last));
    root.headline += fmt::format(", last seen {} ago", seconds_text(root.since_s));
  }
  if (now.control && now.arenas_named) {
    root.notes.push_back(
        {"kept", fmt::format("step {}, complete on {} chips", now.control->common_step(),
                             now.control->chips.size())});
    root.mend = fmt::format("weft rescue {}", now.job);
  } else {
    root.notes.push_back({"kept",
                          "nothing in memory: the job wasn't to be rescued "
                          "(run.keep_for_rescue_s); begin at its last checkpoint"});
    if (now.live) root.mend = fmt::format("weft sweep {}", now.job);
  }
  return root;
}

}  // namespace weft
