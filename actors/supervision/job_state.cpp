#include "actors/supervision/job_state.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/protocol/divergence_text.hpp"
#include "actors/protocol/failure_text.hpp"

namespace weft {

JobState::JobState(const JobTerms& terms)
    : terms_(terms),
      workers_(static_cast<std::size_t>(terms.num_workers)),
      hosts_(terms.num_hosts, terms.num_workers),
      recovery_(terms.recovery),
      checkpoints_(terms.num_workers, terms.keeps_state, terms.resume),
      reports_(workers_.size()) {
  for (int w = 0; w < terms.num_workers; ++w) {
    if (!hosts_.has_joined(hosts_.of(w))) at(w).place = Place::away;
  }
}

/// Returns whether `generation` is the current one and the worker is in its loop.
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
  ended_.erase(process(worker));
}

std::optional<std::string> JobState::refuse_join(int worker, int pid) const {
  if (worker < 0 || worker >= static_cast<int>(workers_.size())) {
    return fmt::format("worker {} can't join: this job has workers 0 to {}", worker,
                       workers_.size() - 1);
  }
  if (over()) return "the job is over";
  const bool must_be_started = !terms_.any_process_joins;
  if (must_be_started && ended_.contains({worker, pid})) {
    return fmt::format("the process of worker {} (pid {}) has ended", worker, pid);
  }
  if (must_be_started && at(worker).is_started && at(worker).pid != pid) {
    return fmt::format("pid {} isn't the process that was started as {}", pid, name(worker));
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
  ++at(worker).link_grace;  // cancels a LinkGrace of the previous link
  return prepare_if_gathered(committed);
}

Actions JobState::unwound(int worker, std::uint64_t generation, std::uint64_t committed) {
  if (phase_ != JobPhase::gathering || generation != generation_ ||
      at(worker).place != Place::unwinding) {
    return {};
  }
  at(worker).place = Place::ready;
  return prepare_if_gathered(committed);
}

Actions JobState::prepare_if_gathered(std::uint64_t committed) {
  const auto is_ready = [](const WorkerMember& worker) { return worker.place == Place::ready; };
  if (phase_ != JobPhase::gathering || !std::ranges::all_of(workers_, is_ready)) return {};
  phase_ = JobPhase::preparing;
  if (!hosts_.have_state()) checkpoints_.lose_kept_state();
  next_step_ = checkpoints_.next_begin(committed);
  const std::uint64_t number = hosts_.prepare();
  return concat({action::Prepare{generation_, next_step_, number}}, start_if_prepared());
}

Actions JobState::prepared(int host, std::uint64_t number) {
  if (phase_ != JobPhase::preparing) return {};
  hosts_.prepared(host, number);
  return start_if_prepared();
}

Actions JobState::start_if_prepared() {
  if (!hosts_.are_prepared()) return {};
  phase_ = JobPhase::running;
  const std::uint64_t step = next_step_;
  const auto load = checkpoints_.to_load(step);
  Start start{.generation = generation_,
              .step = step,
              .saved_step = checkpoints_.saved_step(),
              .asks = asks_};
  if (load) (load->is_saved ? start.resume : start.checkpoint) = load->path;
  if (load) start.copies = load->copies;
  if (!load && step > 0) start.donors = hosts_.donors();
  for (ReportFilter& reports : reports_) {
    reports.begin_generation(generation_, step, start.checkpoint);
  }
  start.reports = reports_.front().count();
  checkpoints_.begin_generation(generation_, step);
  recovery_.resumed(step);
  for (WorkerMember& worker : workers_) {
    worker.place = Place::looping;
    worker.paused.reset();
  }
  pending_.clear();
  wire_lost_.reset();
  granted_ = step + terms_.lease_steps;
  Actions actions{std::move(start), action::Grant{granted_}};
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
  if (phase_ != JobPhase::running || preempted_ || step + terms_.lease_steps <= granted_) {
    return {};
  }
  granted_ = step + terms_.lease_steps;
  return {action::Grant{granted_}};
}

Actions JobState::loop_ended(const LoopEnded& ended, std::uint64_t committed,
                             const std::optional<Missing>& awaited) {
  if (ended.generation == 0) return unfit(ended, committed);
  if (!takes_part(ended.worker, ended.generation)) return {};
  auto& worker = at(ended.worker);
  const bool has_timed_out = ended.error == static_cast<std::uint8_t>(Errc::timeout);
  if (has_timed_out && awaited && takes_part(awaited->worker, generation_)) {
    return lose(
        {.code = static_cast<Errc>(ended.error),
         .message = fmt::format("{} did not arrive{}: {}", name(awaited->worker),
                                awaited->how.empty() ? "" : ", it " + awaited->how, ended.message),
         .worker = awaited->worker,
         .pid = at(awaited->worker).pid,
         .step = ended.step},
        true, committed);
  }
  if (ended.error != 0) {
    std::string message =
        fmt::format("{} failed at step {}: {}", name(ended.worker), ended.step, ended.message);
    if (ended.error == static_cast<std::uint8_t>(Errc::uneven_loops)) {
      return fail_with(uneven(ended, std::move(message)));
    }
    return lose({.code = static_cast<Errc>(ended.error),
                 .message = std::move(message),
                 .worker = ended.worker,
                 .pid = worker.pid,
                 .step = ended.step,
                 .thrown_at = ended.thrown_at},
                true, committed);
  }
  const bool was_paused = worker.paused.has_value();
  worker.ended = ended;
  for (const auto& other : workers_) {
    if (!other.ended || other.ended->runs == ended.runs) continue;
    return fail_with(uneven(ended, describe_uneven(ended, name(ended.worker), *other.ended,
                                                   name(other.ended->worker))));
  }
  Actions actions{
      action::PeerEnded{.worker = ended.worker, .runs = ended.runs, .last = ended.last}};
  if (std::ranges::all_of(workers_, [](const WorkerMember& w) { return w.ended.has_value(); })) {
    end_well();
    actions.push_back(action::Stop{});
  } else if (preempted_ && !was_paused) {
    return concat(std::move(actions), end_if_paused());
  }
  return actions;
}

/// Returns a failure that names the worker whose loop ended after the fewest programs. In a tie
/// this isn't the sender of `told`: that worker may have been about to run a further program, which
/// `told` doesn't count, when it noticed that the other loop had ended.
Failure JobState::uneven(const LoopEnded& told, std::string message) const {
  const LoopEnded* first = &told;
  for (const WorkerMember& worker : workers_) {
    if (worker.ended && worker.ended->runs <= first->runs) first = &*worker.ended;
  }
  return {.code = Errc::uneven_loops,
          .message = std::move(message),
          .worker = first->worker,
          .pid = at(first->worker).pid,
          .step = first->step};
}

/// Handles a worker that has joined but can't run the job's loop.
Actions JobState::unfit(const LoopEnded& ended, std::uint64_t committed) {
  const bool known = ended.worker >= 0 && ended.worker < static_cast<int>(workers_.size());
  if (over() || !known) return {};
  const WorkerMember& worker = at(ended.worker);
  // If this worker was the last to join, the generation has begun at once, so its place is
  // `looping`.
  const bool has_joined = worker.place == Place::ready || worker.place == Place::looping;
  if (!has_joined || worker.ended) return {};
  return lose({.code = static_cast<Errc>(ended.error),
               .message = ended.message,
               .worker = ended.worker,
               .pid = worker.pid},
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
      std::ranges::any_of(workers_, [](const WorkerMember& w) { return w.ended.has_value(); });
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

Actions JobState::cancel(Errc code, std::string message, int worker, std::uint64_t step) {
  if (over()) return {};
  return fail_with({.code = code,
                    .message = std::move(message),
                    .worker = worker,
                    .pid = worker < 0 ? 0 : at(worker).pid,
                    .step = step});
}

bool JobState::reported(const Report& report) {
  checkpoints_.reported(report);
  return reports_.at(static_cast<std::size_t>(report.worker)).is_new(report);
}

std::vector<std::string> JobState::returned() const {
  std::vector<std::string> returned;
  if (phase_ != JobPhase::succeeded) return returned;
  for (const WorkerMember& worker : workers_) returned.push_back(worker.ended->returned);
  return returned;
}

Actions JobState::fail_with(Failure failure) {
  WEFT_CHECK(!over());
  phase_ = JobPhase::failed;
  failure_ = std::move(failure);
  return {action::Cancel{failure_->message}};
}

}  // namespace weft
