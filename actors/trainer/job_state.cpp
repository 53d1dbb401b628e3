#include <weft/actors/trainer/job_state.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/actors/trainer/listing_difference.hpp>

namespace weft {
namespace {

/// " at step 204, in all_reduce #812 'fc1.weight.grad'".
std::string describe(const Whereabouts& where) {
  return fmt::format(" at step {}{}", where.step,
                     where.collective.empty() ? "" : ", in " + where.collective);
}

constexpr const char* kOutOfMemory =
    "; meanwhile the kernel killed a process for want of memory (oom_kill in /proc/vmstat): give "
    "the job more, or let a worker need less";

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name)
                         : fmt::format("signal {}", signal);
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? text : text.substr(begin);
}

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
  ended_pids_.erase(pid);
}

std::optional<std::string> JobState::refuse_join(int worker, int pid) const {
  if (worker < 0 || worker >= static_cast<int>(workers_.size())) {
    return fmt::format("worker {} can't join: this job has workers 0 to {}", worker,
                       workers_.size() - 1);
  }
  if (over()) return "the job is over";
  if (ended_pids_.contains(pid)) {
    return fmt::format("the process of worker {} (pid {}) has ended", worker, pid);
  }
  if (at(worker).place != Place::starting) {
    return fmt::format("{} has joined already", name(worker));
  }
  return {};
}

Actions JobState::joined(int worker, int pid, std::uint64_t committed) {
  at(worker).pid = pid;
  at(worker).place = Place::ready;
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
  for (Worker& worker : workers_) {
    worker.place = Place::looping;
    worker.paused.reset();
  }
  pending_.clear();
  granted_ = committed + lease_steps_;
  Actions actions{{.kind = Action::Kind::start, .number = committed},
                  {.kind = Action::Kind::grant, .number = granted_}};
  if (preempted_) actions.push_back({.kind = Action::Kind::pause});
  return actions;
}

Actions JobState::program(const ProgramSeen& program) {
  if (!takes_part(program.worker, program.generation)) return {};
  auto& seen = pending_[program.sequence];
  if (!seen.empty() && (seen.front().fingerprint_low != program.fingerprint_low ||
                        seen.front().fingerprint_high != program.fingerprint_high)) {
    return compare(seen.front(), program);
  }
  seen.push_back(program);
  if (seen.size() < workers_.size()) {
    if (seen.size() > 1) return {};
    return {{.kind = Action::Kind::asked,
             .worker = program.worker,
             .number = program.run,
             .sequence = program.sequence}};
  }
  pending_.erase(program.sequence);
  return {{.kind = Action::Kind::admit, .number = program.sequence + std::uint64_t{1}}};
}

Actions JobState::compare(const ProgramSeen& first, const ProgramSeen& second) {
  const auto [line, a, b] = first_difference(first.text, second.text);
  return fail_with({.code = Errc::program_divergence,
                    .message = fmt::format(
                        "{} and {} traced different programs for run {}; the first line that "
                        "differs is {}: worker {}: `{}`, worker {}: `{}`; every worker's loop "
                        "must do the same tensor operations in the same order",
                        name(first.worker), name(second.worker), first.run, line, first.worker,
                        trimmed(a), second.worker, trimmed(b)),
                    .worker = second.worker,
                    .pid = at(second.worker).pid});
}

Actions JobState::lease_wanted(std::uint64_t step) {
  if (phase_ != JobPhase::running || preempted_ || step + lease_steps_ <= granted_) return {};
  granted_ = step + lease_steps_;
  return {{.kind = Action::Kind::grant, .number = granted_}};
}

Actions JobState::loop_ended(const LoopEnded& ended, std::uint64_t committed,
                             const std::optional<Missing>& missing) {
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
    return fail_with(
        {.code = Errc::program_divergence,
         .message = fmt::format("{} ended its loop after {} programs, {} after {}: every worker's "
                                "loop must run the same programs",
                                name(ended.worker), ended.runs, name(other.ended->worker),
                                other.ended->runs),
         .worker = ended.worker,
         .pid = worker.pid,
         .step = ended.step});
  }
  Actions actions{{.kind = Action::Kind::loop_ended, .worker = ended.worker, .number = ended.runs}};
  if (std::ranges::all_of(workers_, [](const Worker& w) { return w.ended.has_value(); })) {
    end_well();
    actions.push_back({.kind = Action::Kind::stop});
  } else if (preempted_ && !was_paused) {
    for (Action& action : end_if_paused()) actions.push_back(std::move(action));
  }
  return actions;
}

/// A loop that has returned because it was to is not done.
void JobState::end_well() {
  phase_ = JobPhase::succeeded;
  const auto early =
      std::ranges::find_if(workers_, [](const auto& w) { return w.ended->preempted; });
  if (early == workers_.end()) return;
  phase_ = JobPhase::failed;
  failure_ = {
      .code = Errc::cancelled,
      .message = fmt::format("{}; all loops ended at step {}", *preempted_, early->ended->step),
      .step = early->ended->step};
}

Actions JobState::process_ended(const ProcessEnded& ended, const Whereabouts& where,
                                std::uint64_t committed) {
  auto& worker = at(ended.worker);
  if (over()) return {};
  ended_pids_.insert(worker.pid);
  if (worker.place == Place::dying) {
    worker.place = Place::starting;
    return {
        {.kind = Action::Kind::restart, .worker = ended.worker, .number = recovery_.delay_ms()}};
  }
  if (worker.ended) {
    worker.place = Place::left;
    return {};
  }
  const std::string how = ended.signal != 0 ? "was killed by " + signal_name(ended.signal)
                                            : fmt::format("exited with code {}", ended.exit_code);
  const bool joined = worker.place != Place::starting;
  return lose(
      {.code = Errc::peer_lost,
       .message = fmt::format("{} {}{}{}", name(ended.worker), how,
                              joined ? describe(where) : " before it joined",
                              ended.signal == SIGKILL && ended.out_of_memory ? kOutOfMemory : ""),
       .worker = ended.worker,
       .pid = worker.pid,
       .signal = ended.signal,
       .exit_code = ended.exit_code,
       .step = where.step,
       .collective = where.collective},
      false, committed);
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

Actions JobState::hung(int worker, const std::string& how, const Whereabouts& where,
                       std::uint64_t committed) {
  const Place place = at(worker).place;
  if (over() || (place != Place::looping && place != Place::unwinding)) return {};
  Actions actions =
      lose({.code = Errc::timeout,
            .message = fmt::format("{} hangs{}: {}", name(worker), describe(where), how),
            .worker = worker,
            .pid = at(worker).pid,
            .step = where.step,
            .collective = where.collective},
           true, committed);
  // Where it hangs is worth as much to a job that fails.
  if (over()) actions.insert(actions.begin(), {.kind = Action::Kind::kill, .worker = worker});
  for (Action& action : actions) {
    if (action.kind == Action::Kind::kill && action.worker == worker) action.number = 1;
  }
  return actions;
}

Actions JobState::gather_deadline(std::uint64_t generation, double timeout_s) {
  if (phase_ != JobPhase::gathering || generation != generation_) return {};
  std::vector<std::string> missing;
  int first = -1;
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    if (at(w).place == Place::ready) continue;
    missing.push_back(name(w));
    if (first < 0) first = w;
  }
  return fail_with(
      {.code = Errc::timeout,
       .message = fmt::format("{} of {} workers have not joined within backend.timeout_s = {}: {}; "
                              "what runs before fit() in main() runs in every worker too",
                              missing.size(), workers_.size(), timeout_s, fmt::join(missing, ", ")),
       .worker = first,
       .pid = at(first).pid});
}

Actions JobState::preempt(std::string why) {
  if (over() || preempted_) return {};
  if (phase_ == JobPhase::gathering && generation_ == 1) return cancel(Errc::cancelled, why);
  preempted_ = std::move(why);
  if (phase_ != JobPhase::running) return {};
  return {{.kind = Action::Kind::pause}};
}

Actions JobState::paused(int worker, std::uint64_t generation, std::uint64_t step) {
  if (!preempted_ || !takes_part(worker, generation) || at(worker).ended) return {};
  at(worker).paused = step;
  return end_if_paused();
}

/// A worker whose loop is done may be gone, and has no more to say.
Actions JobState::end_if_paused() {
  std::uint64_t last = 0;
  for (const Worker& worker : workers_) {
    if (!worker.ended && !worker.paused) return {};
    last = std::max(last, worker.ended ? worker.ended->step : *worker.paused);
  }
  return {{.kind = Action::Kind::end_at, .number = last}};
}

Actions JobState::grace_over(double grace_s) {
  if (over()) return {};
  return fail_with(
      {.code = Errc::cancelled,
       .message = fmt::format("{}; its loops had not ended in time for run.grace_s = {}: save a "
                              "checkpoint and return where ctx.reached_preemption() is true",
                              *preempted_, grace_s)});
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
  if (const auto refusal = recovery_.refuse(failure, committed)) {
    failure.message += *refusal;
    return fail_with(std::move(failure));
  }
  Actions actions;
  if (phase_ == JobPhase::running) {
    phase_ = JobPhase::gathering;
    ++generation_;
    actions.push_back({.kind = Action::Kind::unwind, .text = failure.message});
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
      actions.push_back({.kind = Action::Kind::kill, .worker = w});
    }
    if (worker.place == Place::left) {
      worker.place = Place::starting;
      actions.push_back(
          {.kind = Action::Kind::restart, .worker = w, .number = recovery_.delay_ms()});
    }
  }
  return actions;
}

Actions JobState::fail_with(Failure failure) {
  WEFT_CHECK(!over());
  phase_ = JobPhase::failed;
  failure_ = std::move(failure);
  return {{.kind = Action::Kind::cancel, .text = failure_->message}};
}

}  // namespace weft
