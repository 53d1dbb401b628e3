// The part of JobState that handles losses of processes and links, and hangs.

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "actors/process/failure.hpp"
#include "actors/protocol/failure_text.hpp"
#include "actors/supervision/job_state.hpp"

namespace weft {
namespace {

/// The limit on processes of a worker that end before they join, one after another.
constexpr int kStartsInVainMax = 10;

/// The largest number of workers that a message names.
constexpr std::size_t kNamesMax = 16;

}  // namespace

Actions JobState::process_ended(const ProcessEnded& ended, const Whereabouts& where,
                                std::uint64_t committed) {
  Actions actions;
  if (ended.signal == SIGTERM) {
    actions = preempt(fmt::format("worker {} was ended by SIGTERM", ended.worker));
  }
  if (over()) return actions;
  auto& worker = at(ended.worker);
  ended_.insert(process(ended.worker));
  worker.is_started = false;
  if (worker.place == Place::dying) {
    actions.push_back(come_again(ended.worker));
    return actions;
  }
  if (worker.ended) {
    worker.place = Place::left;
    return actions;
  }
  const bool joined = worker.place != Place::starting;
  Failure failure{.code = Errc::peer_lost,
                  .message = fmt::format("{} {}{}{}", name(ended.worker), describe(ended),
                                         joined ? describe(where) : " before it joined",
                                         out_of_memory_advice(ended)),
                  .worker = ended.worker,
                  .pid = worker.pid,
                  .signal = ended.signal,
                  .exit_code = ended.exit_code,
                  .step = where.step,
                  .collective = where.collective};
  const bool is_in_vain = !joined && !is_kill(failure);
  if (is_in_vain) ++worker.in_vain;
  if (worker.in_vain < kStartsInVainMax) {
    const LossKind kind = is_in_vain            ? LossKind::before_join
                          : ended.out_of_memory ? LossKind::out_of_memory
                                                : LossKind::other;
    return concat(std::move(actions), lose(std::move(failure), false, committed, kind));
  }
  failure.message += fmt::format(
      "; {} of its processes in a row ended like this, so the worker is not started again: "
      "code before fit() in main() runs in every worker too",
      kStartsInVainMax);
  return concat(std::move(actions), fail_with(std::move(failure)));
}

Actions JobState::hung(std::span<const Sighting> hanging, const std::string& why,
                       std::uint64_t committed) {
  Actions all;
  for (const Sighting& seen : hanging) {
    const Place place = at(seen.worker).place;
    if (over() || (place != Place::looping && place != Place::unwinding)) continue;
    Actions actions = lose({.code = Errc::timeout,
                            .message = fmt::format("{} hangs{}: {}, and it {}", name(seen.worker),
                                                   describe(seen.where), why, seen.process),
                            .worker = seen.worker,
                            .pid = at(seen.worker).pid,
                            .step = seen.where.step,
                            .collective = seen.where.collective},
                           true, committed);
    if (over()) {
      // The job fails: all hanging workers are killed, and the message names them all.
      for (const Sighting& other : hanging) {
        if (terms_.has_processes) all.push_back(action::Kill{.worker = other.worker});
      }
      failure_->message += also_hanging(hanging, seen.worker);
      actions.back() = action::Cancel{failure_->message};
    }
    all = concat(std::move(all), std::move(actions));
  }
  const auto hangs = [&](int worker) {
    return std::ranges::find(hanging, worker, &Sighting::worker) != hanging.end();
  };
  for (Action& action : all) {
    if (auto* kill = std::get_if<action::Kill>(&action)) kill->dumps_stack = hangs(kill->worker);
  }
  return all;
}

/// Returns a text such as "; so does worker 1 (pid 101) at step 3, it is stopped; worker 2 ...".
std::string JobState::also_hanging(std::span<const Sighting> hanging, int but) const {
  std::string text;
  std::size_t told = 0;
  for (const Sighting& seen : hanging) {
    if (seen.worker == but) continue;
    if (told == kNamesMax) return text + fmt::format("; and {} more", hanging.size() - 1 - told);
    text += fmt::format("; {}{}{}: it {}", told++ == 0 ? "so does " : "", name(seen.worker),
                        describe(seen.where), seen.process);
  }
  return text;
}

/// Handles the loss of a worker: starts the worker again, or fails the job. If `alive`, kills the
/// worker's process.
Actions JobState::lose(Failure failure, bool alive, std::uint64_t committed, LossKind kind) {
  if (auto ending = end_by(failure, committed, kind)) return *std::move(ending);
  Actions actions = end_generation(failure, committed);
  at(failure.worker).place = alive ? Place::dying : Place::left;
  return concat(std::move(actions), gather_again(failure.worker));
}

/// Counts the failure. Returns the actions that end the job if it doesn't survive the failure.
std::optional<Actions> JobState::end_by(Failure& failure, std::uint64_t committed, LossKind kind) {
  const auto refusal = recovery_.refuse(failure, checkpoints_.next_begin(committed), kind);
  if (const auto how = end_of_preempted(failure, !refusal)) return end_preempted(*how, failure);
  if (refusal) {
    if (const auto culprit = checkpoints_.culprit(failure.message)) {
      failure.worker = *culprit;
      failure.pid = at(*culprit).pid;
    }
    failure.message += *refusal;
    return fail_with(std::move(failure));
  }
  return {};
}

/// If a generation runs, ends it because of this failure. All workers then gather.
Actions JobState::end_generation(const Failure& failure, std::uint64_t committed) {
  if (phase_ == JobPhase::preparing) phase_ = JobPhase::gathering;
  if (phase_ != JobPhase::running) return {};
  phase_ = JobPhase::gathering;
  ++generation_;
  if (committed > next_step_) hosts_.all_have_state();
  return {action::Unwind{with_throw(failure.message, failure.thrown_at)},
          action::GatherDeadline{++deadlines_}};
}

/// Makes running workers leave their loops, and starts workers again that have ended. `lost` is a
/// worker whose process must be killed; -1: none.
Actions JobState::gather_again(int lost) {
  Actions actions;
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    WorkerMember& worker = at(w);
    worker.ended.reset();
    const bool here = worker.place == Place::ready || worker.place == Place::looping ||
                      worker.place == Place::unwinding;
    if (here && recovery_.restart() == Restart::group) worker.place = Place::dying;
    if (worker.place == Place::looping) worker.place = Place::unwinding;
    if (worker.place == Place::dying && (w == lost || here)) {
      actions.push_back(action::Kill{.worker = w});
    }
    if (worker.place == Place::left) actions.push_back(come_again(w));
  }
  return actions;
}

void JobState::host_joined(const HostArrival& arrival) {
  hosts_.joined(arrival);
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    if (hosts_.of(w) != arrival.host) continue;
    at(w).place = Place::starting;
    // The host may be another machine, whose processes may have the same pids.
    std::erase_if(ended_, [w](const ProcessId& ended) { return ended.worker == w; });
  }
}

Actions JobState::host_lost(int host, const std::string& why, bool is_copied,
                            std::uint64_t committed) {
  if (over() || !hosts_.has_joined(host)) return {};
  Failure failure{.code = Errc::peer_lost,
                  .message = fmt::format("{} is lost: {}", hosts_.name(host), why),
                  .worker = hosts_.first_worker(host)};
  if (auto ending = end_by(failure, committed, LossKind::host)) return *std::move(ending);
  Actions actions = end_generation(failure, committed);
  const bool is_told = !actions.empty();
  if (!is_told) actions.push_back(action::GatherDeadline{++deadlines_});
  hosts_.lost(host, is_copied);
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    if (hosts_.of(w) != host) continue;
    ended_.insert(process(w));
    at(w) = {.place = Place::away, .link_grace = at(w).link_grace + 1};
  }
  actions.push_back(action::Warn{fmt::format(
      "{}the job waits up to backend.timeout_s = {} for another host with WEFT_HOST_INDEX = {}: "
      "start "
      "the program there as before{}",
      is_told ? "" : failure.message + "; ", terms_.timeout_s, host,
      hosts_.have_state() ? ""
                          : "; the lost host had parts of the state that no other host has, so the "
                            "job will continue from its last checkpoint, unless that host comes "
                            "back with its memory")});
  return concat(std::move(actions), gather_again(-1));
}

Actions JobState::wire_lost(const WireLost& lost) {
  if (wire_lost_ || !takes_part(lost.worker, lost.generation)) return {};
  wire_lost_ = lost;
  return {action::WireGrace{generation_}};
}

Actions JobState::wire_grace_over(std::uint64_t generation, std::uint64_t committed) {
  if (phase_ != JobPhase::running || generation != generation_ || !wire_lost_) return {};
  Failure failure{
      .code = Errc::peer_lost,
      .message = fmt::format(
          "the connection between chip {} of {} and chip {} has broken, though both "
          "processes live: {}",
          wire_lost_->chip, name(wire_lost_->worker), wire_lost_->peer, wire_lost_->why),
      .worker = wire_lost_->worker,
      .pid = at(wire_lost_->worker).pid};
  if (auto ending = end_by(failure, committed)) return *std::move(ending);
  return concat(end_generation(failure, committed), gather_again(-1));
}

Action JobState::come_again(int worker) {
  const std::uint64_t delay = preempted_ ? 0 : recovery_.delay_ms();
  if (delay == 0) return launch(worker);
  at(worker).place = Place::due;
  return action::Backoff{.worker = worker, .ms = delay};
}

/// Starts the worker's next process after all messages of its previous one have arrived, that is,
/// when its link has ended. A link ends with its process, unless a forked child holds the link
/// open; then the launch waits only for a LinkGrace.
Action JobState::launch(int worker) {
  WorkerMember& lost = at(worker);
  lost.place = Place::starting;
  lost.awaits_link_end = lost.is_linked;
  if (lost.is_linked) return action::LinkGrace{worker, ++lost.link_grace};
  return action::Launch{worker};
}

Actions JobState::restart_due(int worker) {
  if (over() || at(worker).place != Place::due) return {};
  return {launch(worker)};
}

Actions JobState::link_down(int worker) {
  WorkerMember& lost = at(worker);
  lost.is_linked = false;
  if (over()) return {};
  if (std::exchange(lost.awaits_link_end, false)) {
    ++lost.link_grace;
    return {action::Launch{worker}};
  }
  return {action::LinkGrace{worker, ++lost.link_grace}};
}

/// Called at the end of a LinkGrace. If the worker's process still hasn't ended, the worker is
/// lost.
Actions JobState::link_grace_over(int worker, std::uint64_t number, const Whereabouts& where,
                                  std::uint64_t committed) {
  WorkerMember& lost = at(worker);
  if (over() || number != lost.link_grace) return {};
  if (std::exchange(lost.awaits_link_end, false)) {
    lost.is_linked = false;
    return {action::Launch{worker}};
  }
  const bool lives =
      lost.place == Place::ready || lost.place == Place::looping || lost.place == Place::unwinding;
  if (!lives || lost.ended) return {};
  return lose({.code = Errc::peer_lost,
               .message = fmt::format("{} lost its control connection{}, but the trainer has "
                                      "not seen its process end",
                                      name(worker), describe(where)),
               .worker = worker,
               .pid = lost.pid,
               .step = where.step,
               .collective = where.collective},
              true, committed);
}

}  // namespace weft
