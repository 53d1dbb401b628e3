#include "actors/supervision/job_state.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/protocol/failure_text.hpp"
#include "actors/protocol/listing_difference.hpp"

namespace weft {
namespace {

/// Of a worker that never joins so many processes are started.
constexpr int kStartsInVainMax = 10;

}  // namespace

JobState::JobState(int num_workers, RecoveryPolicy policy, std::uint64_t lease_steps)
    : workers_(static_cast<std::size_t>(num_workers)),
      recovery_(policy),
      lease_steps_(lease_steps) {}

bool JobState::takes_part(int worker, std::uint64_t generation) const {
  return phase_ == JobPhase::running && generation == generation_ && worker >= 0 &&
         worker < static_cast<int>(workers_.size()) && at(worker).place == Place::looping;
}

std::string JobState::name(int worker) const {
  return fmt::format("worker {} (pid {})", worker, at(worker).pid);
}

void JobState::started(int worker, int pid) {
  at(worker).pid = pid;
  at(worker).is_started = true;
  ended_pids_.erase(pid);
}

std::optional<std::string> JobState::refuse_join(int worker, std::optional<int> pid) const {
  if (worker < 0 || worker >= static_cast<int>(workers_.size())) {
    return fmt::format("worker {} can't join: this job has workers 0 to {}", worker,
                       workers_.size() - 1);
  }
  if (over()) return "the job is over";
  if (pid && ended_pids_.contains(*pid)) {
    return fmt::format("the process of worker {} (pid {}) has ended", worker, *pid);
  }
  if (pid && at(worker).is_started && at(worker).pid != *pid) {
    return fmt::format("pid {} isn't the process that was started as {}", *pid, name(worker));
  }
  if (at(worker).place != Place::starting) {
    return fmt::format("{} has joined already", name(worker));
  }
  return {};
}

Actions JobState::joined(int worker, int pid, std::uint64_t committed) {
  at(worker).pid = pid;
  at(worker).place = Place::ready;
  at(worker).in_vain = 0;
  at(worker).is_linked = true;
  ++at(worker).link_grace;  // the link before is no matter any more
  return start_if_gathered(committed);
}

Actions JobState::unwound(int worker, std::uint64_t generation, std::uint64_t committed) {
  if (phase_ != JobPhase::gathering || generation != generation_ ||
      at(worker).place != Place::unwinding) {
    return {};
  }
  at(worker).place = Place::ready;
  return start_if_gathered(committed);
}

Actions JobState::start_if_gathered(std::uint64_t committed) {
  const auto is_ready = [](const Worker& worker) { return worker.place == Place::ready; };
  if (phase_ != JobPhase::gathering || !std::ranges::all_of(workers_, is_ready)) return {};
  phase_ = JobPhase::running;
  recovery_.resumed(committed);
  for (Worker& worker : workers_) {
    worker.place = Place::looping;
    worker.paused.reset();
  }
  pending_.clear();
  granted_ = committed + lease_steps_;
  Actions actions{action::Start{committed}, action::Grant{granted_}};
  if (preempted_) actions.push_back(action::Pause{});
  return actions;
}

Actions JobState::program(const ProgramSeen& program) {
  if (!takes_part(program.worker, program.generation)) return {};
  auto& seen = pending_[program.sequence];
  if (!seen.empty() && (seen.front().fingerprint_low != program.fingerprint_low ||
                        seen.front().fingerprint_high != program.fingerprint_high)) {
    const ProgramSeen& first = seen.front();
    return fail_with(
        {.code = Errc::program_divergence,
         .message = describe_divergence(first, name(first.worker), program, name(program.worker)),
         .worker = program.worker,
         .pid = at(program.worker).pid});
  }
  seen.push_back(program);
  if (seen.size() < workers_.size()) {
    if (seen.size() > 1) return {};
    return {
        action::Asked{.worker = program.worker, .sequence = program.sequence, .run = program.run}};
  }
  pending_.erase(program.sequence);
  return {action::Admit{program.sequence + std::uint64_t{1}}};
}

Actions JobState::lease_wanted(std::uint64_t step) {
  if (phase_ != JobPhase::running || preempted_ || step + lease_steps_ <= granted_) return {};
  granted_ = step + lease_steps_;
  return {action::Grant{granted_}};
}

Actions JobState::loop_ended(const LoopEnded& ended, std::uint64_t committed,
                             const std::optional<Missing>& missing) {
  if (ended.generation == 0) return unfit(ended, committed);
  if (!takes_part(ended.worker, ended.generation)) return {};
  auto& worker = at(ended.worker);
  if (missing && takes_part(missing->worker, generation_)) {
    return lose(
        {.code = static_cast<Errc>(ended.error),
         .message = fmt::format("{} did not come{}: {}", name(missing->worker),
                                missing->how.empty() ? "" : ", it " + missing->how, ended.message),
         .worker = missing->worker,
         .pid = at(missing->worker).pid,
         .step = ended.step},
        true, committed);
  }
  if (ended.error != 0) {
    return lose({.code = static_cast<Errc>(ended.error),
                 .message = fmt::format("{} failed at step {}: {}", name(ended.worker), ended.step,
                                        ended.message),
                 .worker = ended.worker,
                 .pid = worker.pid,
                 .step = ended.step},
                true, committed);
  }
  const bool was_paused = worker.paused.has_value();
  worker.ended = ended;
  for (const auto& other : workers_) {
    if (!other.ended || other.ended->runs == ended.runs) continue;
    return fail_with({.code = Errc::program_divergence,
                      .message = describe_uneven(ended, name(ended.worker), *other.ended,
                                                 name(other.ended->worker)),
                      .worker = ended.worker,
                      .pid = worker.pid,
                      .step = ended.step});
  }
  Actions actions{
      action::PeerEnded{.worker = ended.worker, .runs = ended.runs, .last = ended.last}};
  if (std::ranges::all_of(workers_, [](const Worker& w) { return w.ended.has_value(); })) {
    end_well();
    actions.push_back(action::Stop{});
  } else if (preempted_ && !was_paused) {
    for (Action& action : end_if_paused()) actions.push_back(std::move(action));
  }
  return actions;
}

/// It has joined, and can't run the job's loop.
Actions JobState::unfit(const LoopEnded& ended, std::uint64_t committed) {
  const bool known = ended.worker >= 0 && ended.worker < static_cast<int>(workers_.size());
  if (over() || !known) return {};
  const Worker& worker = at(ended.worker);
  // The last one that joins has started the generation by it.
  const bool has_joined = worker.place == Place::ready || worker.place == Place::looping;
  if (!has_joined || worker.ended) return {};
  return lose({.code = static_cast<Errc>(ended.error),
               .message = ended.message,
               .worker = ended.worker,
               .pid = worker.pid},
              true, committed);
}

Actions JobState::process_ended(const ProcessEnded& ended, const Whereabouts& where,
                                std::uint64_t committed) {
  auto& worker = at(ended.worker);
  if (over()) return {};
  ended_pids_.insert(worker.pid);
  worker.is_started = false;
  if (worker.place == Place::dying) return {come_again(ended.worker)};
  if (worker.ended) {
    worker.place = Place::left;
    return {};
  }
  const bool joined = worker.place != Place::starting;
  if (!joined) ++worker.in_vain;
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
  if (worker.in_vain < kStartsInVainMax) return lose(std::move(failure), false, committed);
  failure.message += fmt::format(
      "; so did {} of its processes in a row, and it is not started again: what runs before fit() "
      "in main() runs in every worker too",
      kStartsInVainMax);
  return fail_with(std::move(failure));
}

Actions JobState::link_lost(int worker, const Whereabouts& where, std::uint64_t committed) {
  const Worker& lost = at(worker);
  const bool linked =
      lost.place == Place::ready || lost.place == Place::looping || lost.place == Place::unwinding;
  if (over() || !linked || lost.ended) return {};
  return lose({.code = Errc::peer_lost,
               .message = fmt::format("{} lost its control connection{}, and its process has not "
                                      "been seen to end",
                                      name(worker), describe(where)),
               .worker = worker,
               .pid = lost.pid,
               .step = where.step,
               .collective = where.collective},
              true, committed);
}

std::vector<int> JobState::unwinding() const {
  std::vector<int> workers;
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    if (at(w).place == Place::unwinding) workers.push_back(w);
  }
  return workers;
}

std::vector<int> JobState::awaited() const {
  const bool some_ended =
      std::ranges::any_of(workers_, [](const Worker& w) { return w.ended.has_value(); });
  const auto is_awaited = [&](int w) {
    if (at(w).place == Place::unwinding) return true;
    if (at(w).place != Place::looping || at(w).ended) return false;
    return some_ended || std::ranges::any_of(pending_, [w](const auto& program) {
             return std::ranges::find(program.second, w, &ProgramSeen::worker) ==
                    program.second.end();
           });
  };
  std::vector<int> workers;
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    if (is_awaited(w)) workers.push_back(w);
  }
  return workers;
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
      // Where they hang is worth as much to a job that fails.
      for (const Sighting& other : hanging) {
        all.push_back(action::Kill{.worker = other.worker});
      }
      failure_->message += also_hanging(hanging, seen.worker);
      actions.back() = action::Cancel{failure_->message};
    }
    for (Action& action : actions) all.push_back(std::move(action));
  }
  const auto hangs = [&](int worker) {
    return std::ranges::find(hanging, worker, &Sighting::worker) != hanging.end();
  };
  for (Action& action : all) {
    if (auto* kill = std::get_if<action::Kill>(&action)) kill->dumps_stack = hangs(kill->worker);
  }
  return all;
}

Actions JobState::cancel(Errc code, std::string message, int worker, std::uint64_t step) {
  if (over()) return {};
  return fail_with({.code = code,
                    .message = std::move(message),
                    .worker = worker,
                    .pid = worker < 0 ? 0 : at(worker).pid,
                    .step = step});
}

Actions JobState::lose(Failure failure, bool alive, std::uint64_t committed) {
  const auto refusal = recovery_.refuse(failure, committed);
  if (const auto how = end_of_preempted(failure, !refusal)) return end_preempted(*how, failure);
  if (refusal) {
    failure.message += *refusal;
    return fail_with(std::move(failure));
  }
  Actions actions;
  if (phase_ == JobPhase::running) {
    phase_ = JobPhase::gathering;
    ++generation_;
    actions.push_back(action::Unwind{failure.message});
  }
  at(failure.worker).place = alive ? Place::dying : Place::left;
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    Worker& worker = at(w);
    worker.ended.reset();
    const bool here = worker.place == Place::ready || worker.place == Place::looping ||
                      worker.place == Place::unwinding;
    if (here && recovery_.restart() == Restart::group) worker.place = Place::dying;
    if (worker.place == Place::looping) worker.place = Place::unwinding;
    if (worker.place == Place::dying && (w == failure.worker || here)) {
      actions.push_back(action::Kill{.worker = w});
    }
    if (worker.place == Place::left) actions.push_back(come_again(w));
  }
  return actions;
}

Action JobState::come_again(int worker) {
  const std::uint64_t delay = preempted_ ? 0 : recovery_.delay_ms();
  if (delay == 0) return launch(worker);
  at(worker).place = Place::due;
  return action::Backoff{.worker = worker, .ms = delay};
}

/// All that the process before has sent has to have come. Its link ends with it, unless another
/// process that it has forked has it open too.
Action JobState::launch(int worker) {
  Worker& lost = at(worker);
  lost.place = Place::starting;
  lost.awaits_link_end = lost.is_linked;
  if (lost.is_linked) return action::LinkGrace{worker, ++lost.link_grace};
  return action::Launch{worker};
}

Actions JobState::link_down(int worker) {
  Worker& lost = at(worker);
  lost.is_linked = false;
  if (over()) return {};
  if (std::exchange(lost.awaits_link_end, false)) {
    ++lost.link_grace;
    return {action::Launch{worker}};
  }
  return {action::LinkGrace{worker, ++lost.link_grace}};
}

Actions JobState::link_grace_over(int worker, std::uint64_t number, const Whereabouts& where,
                                  std::uint64_t committed) {
  Worker& lost = at(worker);
  if (over() || number != lost.link_grace) return {};
  if (std::exchange(lost.awaits_link_end, false)) {
    lost.is_linked = false;
    return {action::Launch{worker}};
  }
  return link_lost(worker, where, committed);
}

Actions JobState::restart_due(int worker) {
  if (over() || at(worker).place != Place::due) return {};
  return {launch(worker)};
}

Actions JobState::fail_with(Failure failure) {
  WEFT_CHECK(!over());
  phase_ = JobPhase::failed;
  failure_ = std::move(failure);
  return {action::Cancel{failure_->message}};
}

}  // namespace weft
