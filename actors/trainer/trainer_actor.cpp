#include "actors/trainer/trainer_actor.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>

#include <caf/all.hpp>

#include "actors/link/door.hpp"
#include "actors/process/log.hpp"
#include "actors/protocol/whereabouts.hpp"
#include "actors/trainer/trainer_state_actor.hpp"
#include "actors/worker/worker_actor.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace trainer_actor {
namespace {

/// Of the time that a preempted job has, what is left to end its processes in.
constexpr std::chrono::milliseconds kEndingGrace{1000};

/// The checkpoint with the state that the loops need at this step: the chips have none of the step
/// at which the job has begun, or of any step if the state isn't kept.
std::optional<CheckpointTally::Whole> checkpoint_to_load(const TrainerState& state,
                                                         std::uint64_t step) {
  const JobSpec& spec = state.options.spec;
  const auto& resume = state.options.resume;
  if (spec.keeps_state && resume && step == resume->step) {
    return CheckpointTally::Whole{.step = step, .path = resume->path, .is_saved = true};
  }
  return spec.keeps_state ? std::nullopt : state.checkpoints->last();
}

void arm_deadline(Self self) {
  const auto& state = self->state;
  self->delayed_send(self, state.options.spec.timeout(), deadline_a::value,
                     state.job->generation());
}

/// While nobody uses the job's memory.
void begin_generation(Self self, std::uint64_t step) {
  auto& state = self->state;
  const std::uint64_t generation = state.job->generation();
  const auto checkpoint = checkpoint_to_load(state, step);
  const std::string resume = checkpoint && checkpoint->is_saved ? checkpoint->path : "";
  const std::string reported = checkpoint && !checkpoint->is_saved ? checkpoint->path : "";
  state.reports.begin_generation(generation, step, reported);
  state.checkpoints->begin_generation(generation, step);
  state.replicas->forget();
  if (generation > 1 || step > 0) state.memory->begin_generation(step);
  if (generation > 1) {
    const bool kept = state.options.spec.keeps_state;
    const std::string path = checkpoint ? checkpoint->path : "";
    logger("weft.trainer")
        ->warn("the job goes on at step {}{}{}", step,
               kept ? "" : ", as run.failure.state_versions = 1: that of its last checkpoint ",
               !kept && path.empty() ? "(there is none yet)" : path);
  } else if (step > 0) {
    logger("weft.trainer")->info("the job goes on at step {} from {}", step, resume);
  }
  const JobSpec& spec = state.options.spec;
  if (!spec.recovery.recovers() && !spec.is_rescuable()) state.memory->remove_names();  // all joined
  state.workers.tell(Start{.generation = generation,
                           .step = step,
                           .reports = state.reports.count(),
                           .checkpoint = reported,
                           .resume = resume,
                           .saved_step = state.checkpoints->saved_step(),
                           .asks = state.job->has_asked()});
  state.board->trainer().state(ActorState::running);
  state.board->set_status(JobStatus::running);
  state.options.on_event({.kind = TrainerEvent::Kind::started});
}

void unwind(Self self, const std::string& why) {
  auto& state = self->state;
  logger("weft.trainer")->warn("{}; the others wait for it to come again", why);
  state.board->trainer().state(ActorState::joining);
  // The waits end first: a loop may be inside one.
  state.memory->abort(why);
  if (state.hangs) state.hangs->forget();
  arm_deadline(self);
}

void finish(Self self) {
  auto& state = self->state;
  const auto& failure = state.job->failure();
  if (failure) {
    const bool cancelled = failure->code == Errc::cancelled;
    logger("weft.trainer")
        ->log(cancelled ? spdlog::level::info : spdlog::level::err, "{}", failure->message);
    state.board->trainer().error(failure->message);
  }
  state.board->trainer().state(failure ? ActorState::failed : ActorState::ended);
  state.board->set_status(failure ? JobStatus::failed : JobStatus::succeeded);
  std::vector<std::string> worker_metrics(static_cast<std::size_t>(state.options.spec.num_joins()));
  for (auto& [worker, metrics] : state.last_metrics) {
    worker_metrics.at(static_cast<std::size_t>(worker)) = std::move(metrics);
  }
  state.options.on_event({.kind = TrainerEvent::Kind::ended,
                          .whole_checkpoint = state.checkpoints->last_path(),
                          .failure = failure,
                          .survived = state.job->survived(),
                          .worker_metrics = std::move(worker_metrics)});
}

}  // namespace

std::uint64_t committed(Self self) {
  const auto& state = self->state;
  if (state.options.spec.keeps_state) {
    return std::max(common_step(*state.memory),
                    state.options.resume ? state.options.resume->step : 0);
  }
  return state.checkpoints->last() ? state.checkpoints->last()->step : 0;
}

namespace {

void carry_out(Self self, const Action& action) {
  auto& state = self->state;
  const auto in = [self](std::uint64_t ms, auto... message) {
    self->delayed_send(self, std::chrono::milliseconds(ms), message...);
  };
  std::visit(
      Overloaded{
          [&](const action::Start& start) { begin_generation(self, start.step); },
          [&](const action::Unwind& over) { unwind(self, over.why); },
          [&](const action::Kill& kill) {
            if (state.options.spec.num_workers == 0) return;  // a thread of this process
            state.options.on_event({.kind = TrainerEvent::Kind::kill,
                                    .worker = kill.worker,
                                    .dump_stack = kill.dumps_stack});
          },
          [&](const action::Launch& launch) {
            state.workers.remove(launch.worker);
            state.options.on_event({.kind = TrainerEvent::Kind::restart, .worker = launch.worker});
          },
          [&](const action::Backoff& backoff) {
            logger("weft.trainer")
                ->warn("worker {} is started again in {} ms: no step was taken since the last loss",
                       backoff.worker, backoff.ms);
            in(backoff.ms, restart_a::value, std::int32_t{backoff.worker});
          },
          [&](const action::LinkGrace& grace) {
            in(action::kLinkGraceMs, link_grace_a::value, std::int32_t{grace.worker}, grace.number);
          },
          [&](const action::Cancel& cancel) { state.memory->abort(cancel.why); },
          [](const auto&) {},  // to the workers only
      },
      action);
  state.workers.tell(action);
  const bool is_last = std::holds_alternative<action::Cancel>(action) ||
                       std::holds_alternative<action::Stop>(action);
  if (is_last) finish(self);
}

}  // namespace

void carry_out(Self self, const Actions& actions) {
  for (const Action& action : actions) carry_out(self, action);
}

namespace {

caf::result<Assignment> join(Self self, const JoinRequest& request, const WorkerActor& worker) {
  auto& state = self->state;
  if (!same_secret(request.token, state.options.token)) {
    logger("weft.trainer")->warn("refused a join as worker {}: wrong token", request.worker);
    return caf::make_error(caf::sec::invalid_argument, std::string("wrong job token"));
  }
  const auto refusal = state.options.any_process_joins
                           ? state.job->refuse_join(request.worker)
                           : state.job->refuse_join(request.worker, request.pid);
  if (refusal) {
    logger("weft.trainer")->warn("refused a join: {}", *refusal);
    return caf::make_error(caf::sec::invalid_argument, *refusal);
  }
  logger("weft.trainer")->info("worker {} (pid {}) joined", request.worker, request.pid);
  state.workers.add(request.worker, worker);
  self->monitor(worker);
  carry_out(self, state.job->joined(request.worker, request.pid, committed(self)));
  return state.options.assignment;
}

void preempt(Self self, const std::string& why) {
  auto& state = self->state;
  const auto grace = state.options.spec.grace();
  if (grace.count() == 0) return carry_out(self, state.job->cancel(Errc::cancelled, why));
  if (state.job->over() || state.job->preempted()) return;
  carry_out(self, state.job->preempt(why));
  if (state.job->over()) return;
  logger("weft.trainer")
      ->warn("{}; its loops are asked to end within {} s", why, state.options.spec.grace_s);
  self->delayed_send(self, grace - std::min(kEndingGrace, grace / 2), grace_a::value);
}

/// Worker 0's reports are the run's.
void take_report(Self self, const Report& report) {
  auto& state = self->state;
  state.checkpoints->reported(report);
  state.last_metrics[report.worker] = report.metrics;
  if (report.worker != 0 || !state.reports.is_new(report)) return;
  const auto& whole = state.checkpoints->last();
  state.options.on_event({.kind = TrainerEvent::Kind::report,
                          .report = report,
                          .whole_step = whole ? std::optional(whole->step) : std::nullopt});
}

void save_ended(Self self, const SaveEnded& ended) {
  auto& state = self->state;
  if (ended.error == 0) {
    logger("weft.trainer")->info("step {} is saved in {}", ended.step, ended.path);
  }
  carry_out(self, state.checkpoints->save_ended(ended));
}

/// What it is about has joined: a process that was refused, or one that was lost, has no say.
bool from_a_member(Self self) { return self->state.workers.has(self->current_sender()); }

void heard(Self self, const char* message) {
  ++self->state.messages;
  self->state.board->trainer().message(message, self->mailbox().size());
}

/// What workers hold or upload: a difference ends the job.
template <typename Hashes>
void compare(Self self, const Hashes& hashes) {
  heard(self, "hashes");
  JobState& job = *self->state.job;
  if (hashes.generation != job.generation()) return;
  if (const auto fault = self->state.replicas->add(hashes)) {
    carry_out(self, job.cancel(fault->code, fault->message, fault->worker, fault->step));
  }
}

void process_ended(Self self, const ProcessEnded& ended) {
  // Before it could pass it on.
  if (ended.signal == SIGTERM) {
    preempt(self, fmt::format("worker {} was ended by SIGTERM", ended.worker));
  }
  const Board& board = *self->state.board;
  const Actions actions =
      self->state.job->process_ended(ended, locate(board, ended.worker), committed(self));
  if (!actions.empty()) mark_lost(board, ended.worker);
  carry_out(self, actions);
}

void link_down(Self self, const caf::down_msg& down) {
  auto& state = self->state;
  const std::optional<int> lost = state.workers.remove(down.source);
  if (!lost) return;
  const int worker = *lost;
  logger("weft.trainer")->info("lost the link to worker {}", worker);
  carry_out(self, state.job->link_down(worker));
}

TrainerActor::behavior_type trainer_behavior(Self self, const TrainerLinkOptions& options,
                                             JobMemory* memory, Board* board) {
  auto& state = self->state;
  state.options = options;
  state.memory = memory;
  state.board = board;
  state.job.emplace(options.spec.num_joins(), options.spec.recovery);
  state.checkpoints.emplace(options.spec.num_joins());
  if (const auto& resume = options.resume) {
    state.checkpoints->resumed(resume->step, resume->path);
  }
  state.replicas.emplace(options.spec.num_joins(), options.spec.chips_per_worker);
  state.board->trainer().state(ActorState::joining);
  route_to_log(self, "weft.trainer");
  self->set_down_handler(
      [self](caf::scheduled_actor*, caf::down_msg& down) { link_down(self, down); });
  arm_deadline(self);
  begin_to_look_for_hangs(self);
  return {
      [self](join_a, const JoinRequest& request, const WorkerActor& worker) {
        heard(self, "join");
        return join(self, request, worker);
      },
      [self](program_a, const ProgramSeen& program) {
        heard(self, "program");
        if (!from_a_member(self)) return;
        carry_out(self, self->state.job->program(program));
      },
      [self](lease_a, std::uint64_t step) {
        heard(self, "lease");
        if (!from_a_member(self)) return;
        self->state.board->trainer().step(step);
        set_log_step(step);
        carry_out(self, self->state.job->lease_wanted(step));
      },
      [self](report_a, const Report& report) {
        heard(self, "report");
        if (!from_a_member(self)) return;
        take_report(self, report);
      },
      [self](hashes_a, const StateHashes& hashes) {
        if (from_a_member(self)) compare(self, hashes);
      },
      [self](data_a, const DataHashes& hashes) {
        if (from_a_member(self)) compare(self, hashes);
      },
      [self](part_a, const PartWritten& part) {
        heard(self, "part");
        if (!from_a_member(self)) return;
        carry_out(self, self->state.checkpoints->part_written(part));
      },
      [self](saved_a, const SaveEnded& ended) {
        heard(self, "saved");
        if (!from_a_member(self)) return;
        save_ended(self, ended);
      },
      [self](ended_a, const LoopEnded& ended) {
        heard(self, "ended");
        if (!from_a_member(self)) return;
        carry_out(self, self->state.job->loop_ended(ended, committed(self), missing(self, ended)));
      },
      [self](unwound_a, std::int32_t worker, std::uint64_t generation) {
        heard(self, "unwound");
        if (!from_a_member(self)) return;
        carry_out(self, self->state.job->unwound(worker, generation, committed(self)));
      },
      [self](paused_a, std::int32_t worker, std::uint64_t generation, std::uint64_t step) {
        heard(self, "paused");
        if (!from_a_member(self)) return;
        carry_out(self, self->state.job->paused(worker, generation, step));
      },
      [self](asks_a) { self->state.job->asks(); },
      [self](preempt_a, const std::string& why) {
        heard(self, "preempt");
        preempt(self, why);
      },
      [self](grace_a) {
        heard(self, "grace");
        const double grace_s = self->state.options.spec.grace_s;
        carry_out(self, self->state.job->grace_over(grace_s, sightings_of_unwinding(self)));
      },
      [self](started_a, std::int32_t worker, std::int32_t pid) {
        heard(self, "started");
        self->state.job->started(worker, pid);
      },
      [self](process_a, const ProcessEnded& ended) {
        heard(self, "process");
        process_ended(self, ended);
      },
      [self](deadline_a, std::uint64_t generation) {
        heard(self, "deadline");
        const double timeout_s = self->state.options.spec.timeout_s;
        carry_out(self, self->state.job->gather_deadline(generation, timeout_s,
                                                         sightings_of_unwinding(self)));
      },
      [self](tick_a) { look_for_hangs(self); },
      [self](restart_a, std::int32_t worker) {
        heard(self, "restart");
        carry_out(self, self->state.job->restart_due(worker));
      },
      [self](link_grace_a, std::int32_t worker, std::uint64_t number) {
        heard(self, "link grace");
        const Whereabouts where = locate(*self->state.board, worker);
        carry_out(self, self->state.job->link_grace_over(worker, number, where, committed(self)));
      },
      [self](cancel_a, std::uint8_t code, const std::string& reason) {
        heard(self, "cancel");
        carry_out(self, self->state.job->cancel(static_cast<Errc>(code), reason));
      },
  };
}

}  // namespace
}  // namespace trainer_actor

TrainerActor spawn_trainer(System& system, const TrainerLinkOptions& options, JobMemory& memory,
                           Board& board) {
  return system.caf().spawn(trainer_actor::trainer_behavior, options, &memory, &board);
}

}  // namespace weft
