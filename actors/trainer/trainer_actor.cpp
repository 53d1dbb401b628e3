#include "actors/trainer/trainer_actor.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include <caf/all.hpp>

#include "actors/link/watched_actor.hpp"
#include "actors/process/failure.hpp"
#include "actors/process/log.hpp"
#include "actors/trainer/trainer_state_actor.hpp"
#include "actors/worker/worker_actor.hpp"
#include "spmd/base/same_secret.hpp"

namespace weft {
namespace trainer_actor {
namespace {

/// Prepares the trainer's state for a generation, before the Start is sent to the workers.
void begin_generation(Self self, const Start& start) {
  auto& state = state_of(self);
  const JobSpec& spec = state.options.spec;
  state.replicas->begin_generation(start.generation);
  state.hosts->start();
  state.wires = WireBook(spec.num_chips(), start.generation, state.host_0);
  state.recorder.events.put(EventKind::generation, {.number = start.generation});
  const std::string& load = start.resume.empty() ? start.checkpoint : start.resume;
  if (start.generation > 1) {
    const std::string last =
        load.empty() ? "it has no checkpoint yet" : "its last checkpoint is " + load;
    logger("weft.trainer")
        ->warn("the job continues at step {}{}{}", start.step, spec.keeps_state ? "" : "; " + last,
               spec.keeps_state ? "" : ", and run.failure.state_versions = 1 keeps no later state");
  } else if (start.step > 0) {
    logger("weft.trainer")->info("the job continues at step {} from {}", start.step, load);
  }
  say_donors(start);
  // Without restarts of workers and without a rescue, no other process will open the arenas.
  if (!spec.recovery.recovers() && !spec.is_rescuable()) state.hosts->remove_arena_names();
  state.recorder.state(ActorState::running);
  state.hosts->set_status(JobStatus::running);
  state.options.on_event(trainer_event::Started{
      .generation = start.generation, .step = start.step, .has_copies = !start.folders.empty()});
}

void unwind(Self self, const std::string& why) {
  auto& state = state_of(self);
  logger("weft.trainer")->warn("{}; the other workers wait until it has joined again", why);
  state.recorder.state(ActorState::joining);
  // The abort ends the wait of a loop in a collective; the loop gets no message before that.
  state.hosts->abort(why);
  if (state.hangs) state.hangs->forget();
  unwind_commands(self);
}

void finish(Self self) {
  auto& state = state_of(self);
  end_commands(self);
  const auto& failure = state.job->failure();
  const bool cancelled = failure && failure->code == Errc::cancelled;
  if (failure) {
    logger("weft.trainer")
        ->log(cancelled ? spdlog::level::info : spdlog::level::err, "{}",
              with_throw(failure->message, failure->thrown_at));
    state.recorder.error(failure->message);
  }
  state.recorder.state(failure && !cancelled ? ActorState::failed : ActorState::ended);
  state.hosts->set_status(cancelled ? JobStatus::cancelled
                          : failure ? JobStatus::failed
                                    : JobStatus::succeeded);
  state.hosts->stop();
  std::vector<std::string> worker_metrics(static_cast<std::size_t>(state.options.spec.num_joins()));
  for (auto& [worker, metrics] : state.last_metrics) {
    worker_metrics.at(static_cast<std::size_t>(worker)) = std::move(metrics);
  }
  std::uint64_t step = 0;
  for (const ActorRow& row : state.hosts->rows()) {
    if (row.kind == ActorKind::worker) step = std::max(step, row.step);
  }
  state.options.on_event(
      trainer_event::Ended{.failure = failure,
                           .step = step,
                           .survived = state.job->recovery().failures(),
                           .whole_checkpoint = state.job->checkpoints().last_path(),
                           .worker_metrics = std::move(worker_metrics),
                           .returned = state.job->returned()});
}

void carry_out(Self self, Action action) {
  auto& state = state_of(self);
  if (auto* const start = std::get_if<Start>(&action)) complete(self, *start);
  const auto in = [self](std::uint64_t ms, auto... message) {
    send_later(self, std::chrono::milliseconds(ms), message...);
  };
  std::visit(
      Overloaded{
          [&](const action::Prepare& order) { prepare(self, order); },
          [&](const Start& start) { begin_generation(self, start); },
          [&](const action::Unwind& over) { unwind(self, over.why); },
          [&](const action::Pause&) {
            carry_out(self, state.desk->close(Error(Errc::cancelled, "the job is to end")));
          },
          [&](const action::Kill& kill) {
            if (state.hosts->is_own(kill.worker)) return state.options.on_event(kill);
            state.hosts->kill(kill.worker, kill.dumps_stack);
          },
          [&](const action::Launch& launch) {
            if (state.hosts->is_own(launch.worker)) return state.options.on_event(launch);
            state.hosts->launch(launch.worker);
          },
          [&](const action::Warn& warn) { logger("weft.trainer")->warn("{}", warn.text); },
          [&](const action::GatherDeadline& deadline) {
            send_later(self, state.options.spec.timeout(), deadline_a_v, deadline.number);
          },
          [&](const action::Grace& grace) { in(grace.ms, grace_a_v); },
          [&](const action::Backoff& backoff) {
            logger("weft.trainer")
                ->warn("worker {} is started again in {} ms: no step was taken since the last loss",
                       backoff.worker, backoff.ms);
            in(backoff.ms, restart_a_v, std::int32_t{backoff.worker});
          },
          [&](const action::WireGrace& grace) {
            in(action::kWireGraceMs, wire_grace_a_v, grace.generation);
          },
          [&](const action::LinkGrace& grace) {
            in(action::kLinkGraceMs, link_grace_a_v, std::int32_t{grace.worker}, grace.number);
          },
          [&](const action::Cancel& cancel) { state.hosts->abort(cancel.why); },
          [](const auto&) {},  // the others are messages to workers
      },
      action);
  state.workers.tell(action);
  const bool is_last = std::holds_alternative<action::Cancel>(action) ||
                       std::holds_alternative<action::Stop>(action);
  if (is_last) finish(self);
}

}  // namespace

void carry_out(Self self, const Actions& actions) {
  auto& state = state_of(self);
  const std::vector<Failure>& losses = state.job->recovery().failures();
  for (; state.losses_told < losses.size(); ++state.losses_told) {
    state.options.on_event(trainer_event::Lost{losses[state.losses_told]});
  }
  for (const Action& action : actions) carry_out(self, action);
}

namespace {

void take_report(Self self, const Report& report) {
  auto& state = state_of(self);
  state.last_metrics[report.worker] = report.metrics;
  if (!report.checkpoint.empty()) {
    state.desk->checkpoint_reported(report.worker, report.generation, report.step,
                                    report.checkpoint);
  }
  const bool is_new = state.job->reported(report);
  tell_whole_checkpoint(self);
  if (!is_new || (report.worker != 0 && !state.options.tells_all_reports)) return;
  const auto& whole = state.job->checkpoints().last();
  state.options.on_event(trainer_event::Reported{
      .report = report, .whole_step = whole ? std::optional(whole->step) : std::nullopt});
}

/// Returns whether the message is from a member. Messages of refused or dropped processes are
/// ignored.
bool from_a_member(Self self) { return state_of(self).workers.has(self->current_sender()); }

void heard(Self self) { ++state_of(self).messages; }

/// Ends the job if the replicas of the state differ between workers.
void end_by(Self self, const std::optional<ReplicaFault>& fault) {
  if (!fault) return;
  carry_out(self,
            state_of(self).job->cancel(fault->code, fault->message, fault->worker, fault->step));
}

template <typename Hashes>
void compare(Self self, const Hashes& hashes) {
  heard(self);
  end_by(self, state_of(self).replicas->add(hashes));
}

void process_ended(Self self, const ProcessEnded& ended) {
  HostLink& host = *state_of(self).hosts;
  JobState& job = *state_of(self).job;
  const bool was_over = job.over();
  const Actions actions = job.process_ended(ended, host.locate(ended.worker), host.common_step());
  if (!was_over && job.is_lost(ended.worker)) host.mark_lost(ended.worker, {});
  carry_out(self, actions);
}

using WatchedTrainer = WatchedActor<TrainerActor, TrainerState>;

TrainerActor::behavior_type trainer_behavior(Self self, const TrainerLinkOptions& options,
                                             HostLink* host, const Recorder& recorder) {
  auto& state = state_of(self);
  state.options = options;
  state.hosts.emplace(*host, options.spec);
  state.recorder = recorder;
  state.workers.record_by(recorder.events);
  static_cast<WatchedTrainer*>(self)->find_origins_by([self](const caf::strong_actor_ptr& sender) {
    return state_of(self).workers.origin(sender);
  });
  state.job.emplace(terms_of(options));
  const auto& resumes = options.resumes;
  if (!resumes.empty()) state.saved_told = resumes.front().step;
  state.desk.emplace(options.spec.num_joins(),
                     resumes.empty() ? std::vector<StoredCommand>() : resumes.front().commands);
  state.folders.emplace(options.spec.place.count,
                        options.hosts_look ? HostStorage::unknown : HostStorage::none,
                        options.assignment.checkpoint.path);
  state.replicas.emplace(options.spec.num_joins(), options.spec.chips_per_worker);
  state.recorder.state(ActorState::joining);
  route_to_log(self, "weft.trainer");
  carry_out(self, state.job->begin());
  begin_to_look_for_hangs(self);
  if (options.spec.place.count > 1) beat(self);
  return {
      [self](host_a, const HostJoin& request, const AgentActor& agent) {
        heard(self);
        return join_host(self, request, agent);
      },
      [self](folder_a, const HostFolder& folder, const AgentActor& agent) {
        heard(self);
        return take_folder(self, folder, agent);
      },
      [self](news_a, const HostNews& news) { take_news(self, news); },
      [self](prepared_a, std::int32_t other, std::uint64_t number) {
        heard(self);
        host_prepared(self, other, number);
      },
      [self](join_a, const JoinRequest& request, const WorkerActor& worker) {
        heard(self);
        return join(self, request, worker);
      },
      [self](program_a, const ProgramSeen& program) {
        heard(self);
        if (!from_a_member(self)) return;
        carry_out(self, state_of(self).job->program(program));
      },
      [self](lease_a, std::uint64_t step) {
        heard(self);
        if (!from_a_member(self)) return;
        state_of(self).recorder.board.step(step);
        state_of(self).recorder.events.step(step);
        set_log_step(step);
        carry_out(self, state_of(self).job->lease_wanted(step));
        carry_out(self, state_of(self).desk->reached(step));
      },
      [self](report_a, const Report& report) {
        heard(self);
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
        heard(self);
        if (!from_a_member(self)) return;
        carry_out(self, state_of(self).job->checkpoints().part_written(part));
      },
      [self](saved_a, const SaveEnded& ended) {
        heard(self);
        if (!from_a_member(self)) return;
        save_ended(self, ended);
      },
      [self](ended_a, const LoopEnded& ended) {
        heard(self);
        if (!from_a_member(self)) return;
        if (ended.error == 0) {
          end_by(self, state_of(self).replicas->ended(ended.worker, ended.generation));
          carry_out(self, state_of(self).desk->loop_ended(ended.worker, ended.generation));
        }
        carry_out(self, state_of(self).job->loop_ended(ended, state_of(self).hosts->common_step(),
                                                       awaited_by(self, ended.worker)));
      },
      [self](unwound_a, std::int32_t worker, std::uint64_t generation, std::uint64_t committed) {
        heard(self);
        if (!from_a_member(self)) return;
        unwound(self, worker, generation, committed);
      },
      [self](paused_a, std::int32_t worker, std::uint64_t generation, std::uint64_t step) {
        heard(self);
        if (!from_a_member(self)) return;
        carry_out(self, state_of(self).job->paused(worker, generation, step));
      },
      [self](held_a, std::int32_t worker, std::uint64_t generation, std::uint64_t step) {
        heard(self);
        if (!from_a_member(self)) return;
        carry_out(self, state_of(self).desk->held(worker, generation, step));
      },
      [self](read_a, const CommandsRead& read) {
        heard(self);
        if (!from_a_member(self)) return;
        carry_out(self, state_of(self).desk->read(read.worker, read.generation, read.marks,
                                                  read.is_earlier));
      },
      [self](waits_a, const CommandsAwaited& awaited) {
        heard(self);
        if (!from_a_member(self)) return;
        carry_out(self, state_of(self).desk->waits(awaited.worker, awaited.generation, awaited.step,
                                                   awaited.last));
      },
      [self](wires_a, const WireAddresses& addresses) {
        heard(self);
        if (from_a_member(self)) take_wires(self, addresses);
      },
      [self](wire_lost_a, const WireLost& lost) {
        heard(self);
        if (from_a_member(self)) wire_lost(self, lost);
      },
      [self](post_a, const CommandPost& post) { carry_out(self, state_of(self).desk->post(post)); },
      [self](asks_a) { state_of(self).job->asks(); },
      [self](preempt_a, const std::string& why) {
        heard(self);
        carry_out(self, state_of(self).job->preempt(why));
      },
      [self](grace_a) {
        heard(self);
        carry_out(self, state_of(self).job->grace_over(sightings_of_unwinding(self)));
      },
      [self](started_a, std::int32_t worker, std::int32_t pid) {
        heard(self);
        if (may_tell_of(self, worker)) state_of(self).job->started(worker, pid);
      },
      [self](process_a, const ProcessEnded& ended) {
        heard(self);
        if (may_tell_of(self, ended.worker)) process_ended(self, ended);
      },
      [self](deadline_a, std::uint64_t number) {
        heard(self);
        carry_out(self, state_of(self).job->gather_deadline(number, sightings_of_unwinding(self)));
      },
      [self](tick_a) { look_for_hangs(self); },
      [self](restart_a, std::int32_t worker) {
        heard(self);
        carry_out(self, state_of(self).job->restart_due(worker));
      },
      [self](link_grace_a, std::int32_t worker, std::uint64_t number) {
        heard(self);
        link_grace_over(self, worker, number);
      },
      [self](wire_grace_a, std::uint64_t generation) {
        heard(self);
        wire_grace_over(self, generation);
      },
      [self](beat_a) { beat(self); },
      [self](keep_a, bool is_kept) { state_of(self).hosts->keep_hang(is_kept); },
      [self](cancel_a, std::uint8_t code, const std::string& reason) {
        heard(self);
        cancel(self, static_cast<Errc>(code), reason);
      },
  };
}

}  // namespace
}  // namespace trainer_actor

TrainerActor spawn_trainer(System& system, const TrainerLinkOptions& options, HostLink& host,
                           const Recorder& recorder) {
  return system.caf().spawn<trainer_actor::WatchedTrainer>(
      recorder, [=, host = &host](trainer_actor::Self self) {
        return trainer_actor::trainer_behavior(self, options, host, recorder);
      });
}

}  // namespace weft
