// The part of JobState that ends a job: after its loops, after a preemption, or if workers don't
// gather in time.

#include <algorithm>
#include <cmath>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/protocol/failure_text.hpp"
#include "actors/supervision/job_state.hpp"

namespace weft {
namespace {

/// The largest number of workers that a message names.
constexpr std::size_t kNamesMax = 16;

/// The part of a preempted job's grace that is reserved for ending its processes.
constexpr std::uint64_t kEndingGraceMs = 1000;

}  // namespace

/// Ends the job. It has succeeded, unless its loops ended early because they were told to: then it
/// counts as cancelled.
void JobState::end_well() {
  phase_ = JobPhase::succeeded;
  const auto early =
      std::ranges::find_if(workers_, [](const auto& w) { return w.ended->preempted; });
  if (early == workers_.end()) return;
  phase_ = JobPhase::failed;
  const bool left = std::ranges::any_of(workers_, [](const auto& w) { return w.ended->left; });
  failure_ = {.code = Errc::cancelled,
              .message = fmt::format(
                  "{}; {} at step {}{}", *preempted_,
                  left ? "all loops were ended, without a checkpoint," : "all loops ended",
                  early->ended->step,
                  left ? ": no loop had called ctx.reached_preemption(); when it returns true, "
                         "save a checkpoint and return"
                       : ""),
              .step = early->ended->step};
}

/// Returns a text such as "worker 1 (pid 101) has not joined, worker 2 (pid 102) has not left its
/// loop: ...".
std::string JobState::missing_text(std::span<const Sighting> sightings) const {
  std::vector<std::string> missing = hosts_.missing();
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    const auto seen = std::ranges::find(sightings, w, &Sighting::worker);
    const std::string how = seen == sightings.end() ? "" : ", and " + seen->process;
    if (!hosts_.has_joined(hosts_.of(w))) continue;
    if (missing.size() >= kNamesMax && at(w).place != Place::ready) {
      missing.push_back("...");
      break;
    }
    switch (at(w).place) {
      case Place::away: break;  // hosts_.missing() has named its host
      case Place::due: missing.push_back(fmt::format("{} waits to be started", name(w))); break;
      case Place::starting: missing.push_back(fmt::format("{} has not joined", name(w))); break;
      case Place::unwinding:
        missing.push_back(fmt::format("{} has not left its loop{}{}", name(w),
                                      how.empty() ? "" : describe(seen->where), how));
        break;
      case Place::dying: missing.push_back(fmt::format("{} has not ended", name(w))); break;
      case Place::ready:
      case Place::looping:
      case Place::left: break;
    }
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

Actions JobState::gather_deadline(std::uint64_t number, std::span<const Sighting> sightings) {
  if (number != deadlines_) return {};
  if (phase_ == JobPhase::preparing) {
    return fail_with({.code = Errc::timeout,
                      .message = fmt::format("the memory of {} was not ready within "
                                             "backend.timeout_s = {}: the log of that host in "
                                             "its run folder may say why",
                                             hosts_.unprepared(), terms_.timeout_s)});
  }
  if (phase_ != JobPhase::gathering) return {};
  const auto is_missing = [](const WorkerMember& worker) { return worker.place != Place::ready; };
  const auto is_starting = [](const WorkerMember& worker) {
    return worker.place == Place::starting;
  };
  const auto first = std::ranges::find_if(workers_, is_missing);
  return fail_with(
      {.code = Errc::timeout,
       .message = fmt::format(
           "{} of {} workers were not ready within backend.timeout_s = {}: {}{}",
           std::ranges::count_if(workers_, is_missing), workers_.size(), terms_.timeout_s,
           missing_text(sightings),
           std::ranges::any_of(workers_, is_starting)
               ? "; code before fit() in main() runs in every worker too"
               : "; a loop leaves a generation at its next sync or read, so its own work "
                 "before that has to end"),
       .worker = static_cast<int>(first - workers_.begin()),
       .pid = first->pid});
}

Actions JobState::preempt(std::string why) {
  if (over() || preempted_) return {};
  const bool has_begun = phase_ == JobPhase::running || generation_ > 1;
  if (terms_.grace_s == 0 || !has_begun) return cancel(Errc::cancelled, std::move(why));
  preempted_ = std::move(why);
  Actions actions;
  if (phase_ == JobPhase::running) {
    actions.push_back(action::Pause{});
  } else if (!asks_) {
    return end_preempted(
        "this came while the job waited to continue after a loss, and no loop calls "
        "ctx.reached_preemption()");
  } else {
    for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
      actions = concat(std::move(actions), restart_due(w));
    }
  }
  actions.push_back(action::Warn{
      fmt::format("{}; its loops are asked to end within {} s", *preempted_, terms_.grace_s)});
  const auto grace_ms = static_cast<std::uint64_t>(std::ceil(1000 * terms_.grace_s));
  actions.push_back(action::Grace{grace_ms - std::min(kEndingGraceMs, grace_ms / 2)});
  return actions;
}

Actions JobState::paused(int worker, std::uint64_t generation, std::uint64_t step) {
  if (!preempted_ || !takes_part(worker, generation) || at(worker).ended) return {};
  at(worker).paused = step;
  return end_if_paused();
}

/// When every loop is paused or has ended, tells the loops at which step to end. An ended loop
/// needn't be paused, because its process may be gone.
Actions JobState::end_if_paused() {
  std::uint64_t last = 0;
  for (const WorkerMember& worker : workers_) {
    if (!worker.ended && !worker.paused) return {};
    last = std::max(last, worker.ended ? worker.ended->step : *worker.paused);
  }
  return {action::EndAt{last}};
}

Actions JobState::grace_over(std::span<const Sighting> sightings) {
  if (over()) return {};
  if (phase_ == JobPhase::gathering || phase_ == JobPhase::preparing) {
    return end_preempted(
        fmt::format("the job had not continued after a loss within run.grace_s = {}: {}",
                    terms_.grace_s, missing_text(sightings)));
  }
  return end_preempted(
      fmt::format("its loops had not ended within run.grace_s = {}: save a checkpoint and "
                  "return when ctx.reached_preemption() is true",
                  terms_.grace_s));
}

Actions JobState::end_preempted(const std::string& how, const Failure& lost) {
  Failure failure = lost;
  failure.code = Errc::cancelled;
  failure.message = fmt::format("{}; {}", *preempted_, how);
  return fail_with(std::move(failure));
}

/// Returns the reason if this loss ends a preempted job, else nothing. It ends the job if SIGTERM
/// ended the worker and the job doesn't survive that loss, if no loop asks whether to end, or if
/// the worker could be started again only after a delay.
std::optional<std::string> JobState::end_of_preempted(const Failure& lost, bool is_survived) const {
  if (!preempted_) return {};
  if (!is_survived) {
    if (lost.signal != SIGTERM) return {};
    return lost.message + ", before its loop could end";
  }
  if (!asks_) return lost.message + "; no loop calls ctx.reached_preemption()";
  if (recovery_.delay_ms() == 0) return {};
  return lost.message +
         "; the job doesn't wait for this worker, because it isn't the first "
         "loss since the last step";
}

}  // namespace weft
