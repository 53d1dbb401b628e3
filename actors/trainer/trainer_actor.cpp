#include <weft/actors/trainer/trainer_link.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <set>

#include <caf/all.hpp>

#include <weft/actors/door.hpp>
#include <weft/actors/log.hpp>
#include <weft/actors/system.hpp>
#include <weft/actors/trainer/checkpoint_tally.hpp>
#include <weft/actors/trainer/hang_watch.hpp>
#include <weft/actors/trainer/job_state.hpp>
#include <weft/actors/trainer/replica_check.hpp>
#include <weft/actors/trainer/report_filter.hpp>
#include <weft/actors/trainer/whereabouts.hpp>
#include <weft/actors/trainer/worker_group_actor.hpp>
#include <weft/actors/worker/worker_actor.hpp>
#include <weft/transport/commits.hpp>

namespace weft {
namespace {

struct TrainerState {
  std::optional<JobState> job;
  TrainerLinkOptions options;
  JobMemory* memory = nullptr;
  Board* board = nullptr;
  WorkerGroup workers;
  std::set<int> due;  ///< to be started again, once the link to the process before is gone
  ReportFilter reports;
  std::optional<CheckpointTally> checkpoints;
  std::optional<HangWatch> hangs;
  std::optional<ReplicaCheck> replicas;
  const char* name = "weft.trainer";
};

using Self = TrainerActor::stateful_pointer<TrainerState>;

/// How long a process may outlive its control connection before that counts as a loss.
constexpr std::chrono::seconds kLinkGrace{1};

/// Of the time that a preempted job has, what is left to end its processes in.
constexpr std::chrono::milliseconds kEndingGrace{1000};

/// How often hangs are looked for.
constexpr std::chrono::milliseconds kHangTick{200};

/// Where the state isn't kept.
std::string checkpoint_to_load(const TrainerState& state) {
  return state.options.spec.keeps_state ? "" : state.checkpoints->last_path();
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
  state.reports.begin_generation(generation, step);
  state.checkpoints->begin_generation(step);
  state.replicas->forget();
  const std::string checkpoint = checkpoint_to_load(state);
  if (generation > 1) {
    state.memory->begin_generation(step);
    const bool kept = state.options.spec.keeps_state;
    logger("weft.trainer")
        ->warn("the job goes on at step {}{}{}", step,
               kept ? "" : ", as run.failure.state_versions = 1: that of its last checkpoint ",
               !kept && checkpoint.empty() ? "(there is none yet)" : checkpoint);
  }
  state.workers.tell(Start{.generation = generation,
                           .step = step,
                           .reports = state.reports.count(),
                           .checkpoint = checkpoint});
  state.board->trainer().state(ActorState::running);
  state.board->set_status(JobStatus::running);
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
    logger("weft.trainer")->error("{}", failure->message);
    state.board->trainer().error(failure->message);
  }
  state.board->trainer().state(failure ? ActorState::failed : ActorState::ended);
  state.board->set_status(failure ? JobStatus::failed : JobStatus::succeeded);
  state.options.on_event({.kind = TrainerEvent::Kind::ended,
                          .whole_checkpoint = state.checkpoints->last_path(),
                          .failure = failure,
                          .survived = state.job->survived()});
}

void start_again(Self self, int worker) {
  auto& state = self->state;
  if (state.job->over()) return;
  if (state.workers.has(worker)) {
    state.due.insert(worker);  // all that the process has sent has to have come
  } else {
    state.options.on_event({.kind = TrainerEvent::Kind::restart, .worker = worker});
  }
}

/// The step that the job would go on at.
std::uint64_t committed(Self self) {
  const auto& state = self->state;
  if (state.options.spec.keeps_state) return common_step(*state.memory);
  return state.checkpoints->last() ? state.checkpoints->last()->step : 0;
}

void carry_out(Self self, const Actions& actions) {
  auto& state = self->state;
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::start: begin_generation(self, action.number); break;
      case Action::Kind::unwind: unwind(self, action.text); break;
      case Action::Kind::kill:
        state.options.on_event({.kind = TrainerEvent::Kind::kill,
                                .worker = action.worker,
                                .dump_stack = action.number != 0});
        break;
      case Action::Kind::restart:
        self->delayed_send(self, std::chrono::milliseconds(action.number), restart_a::value,
                           std::int32_t{action.worker});
        break;
      case Action::Kind::cancel: state.memory->abort(action.text); break;
      default: break;
    }
    state.workers.tell(action);
    if (action.kind == Action::Kind::cancel || action.kind == Action::Kind::stop) finish(self);
  }
}

/// For whom a worker waited that gave up.
std::optional<Missing> missing(Self self, const LoopEnded& ended) {
  if (ended.error != static_cast<std::uint8_t>(Errc::timeout)) return {};
  const auto worker = find_awaited(self->state.board->readable_rows(), ended.worker);
  if (!worker) return {};
  return Missing{*worker, describe_process(self->state.job->pid(*worker))};
}

/// Looks for workers that hang: where they are is written into their logs before they are killed.
void look_for_hangs(Self self) {
  auto& state = self->state;
  if (state.job->over()) return;
  const Board& board = *state.board;
  for (const int worker : state.hangs->observe(board.readable_rows(), state.job->awaited(),
                                               std::chrono::steady_clock::now())) {
    const std::string how =
        fmt::format("others have waited {} s for it, and it {}", state.options.spec.hang_timeout_s,
                    describe_process(state.job->pid(worker)));
    carry_out(self, state.job->hung(worker, how, locate(board, worker), committed(self)));
  }
  self->delayed_send(self, kHangTick, tick_a::value);
}

caf::result<Assignment> join(Self self, const JoinRequest& request, const WorkerActor& worker) {
  auto& state = self->state;
  if (!same_secret(request.token, state.options.token)) {
    logger("weft.trainer")->warn("refused a join as worker {}: wrong token", request.worker);
    return caf::make_error(caf::sec::invalid_argument, std::string("wrong job token"));
  }
  if (const auto refusal = state.job->refuse_join(request.worker, request.pid)) {
    logger("weft.trainer")->warn("refused a join: {}", *refusal);
    return caf::make_error(caf::sec::invalid_argument, *refusal);
  }
  logger("weft.trainer")->info("worker {} (pid {}) joined", request.worker, request.pid);
  state.workers.add(request.worker, worker);
  self->monitor(worker);
  carry_out(self, state.job->joined(request.worker, request.pid, committed(self)));
  return assignment_of(state.options.spec, state.options.run_dir);
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
  if (report.worker != 0 || !state.reports.is_new(report)) return;
  state.options.on_event({.kind = TrainerEvent::Kind::report,
                          .report = report,
                          .whole_checkpoint = state.checkpoints->last_path()});
}

void compare_replicas(Self self, const StateHashes& hashes) {
  JobState& job = *self->state.job;
  if (hashes.generation != job.generation()) return;
  if (const auto fault = self->state.replicas->add(hashes)) {
    carry_out(self, job.cancel(Errc::corrupt, fault->message, fault->worker, fault->step));
  }
}

void heard(Self self, const char* message) {
  self->state.board->trainer().message(message, self->mailbox().size());
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
  if (state.due.erase(worker) != 0) return start_again(self, worker);
  self->delayed_send(self, kLinkGrace, lost_a::value, std::int32_t{worker});
}

TrainerActor::behavior_type trainer_behavior(Self self, const TrainerLinkOptions& options,
                                             JobMemory* memory, Board* board) {
  auto& state = self->state;
  state.options = options;
  state.memory = memory;
  state.board = board;
  state.job.emplace(options.spec.num_joins(), options.spec.recovery);
  state.checkpoints.emplace(options.spec.num_joins());
  state.replicas.emplace(options.spec.num_joins(), options.spec.chips_per_worker);
  state.board->trainer().state(ActorState::joining);
  route_to_log(self, "weft.trainer");
  self->set_down_handler(
      [self](caf::scheduled_actor*, caf::down_msg& down) { link_down(self, down); });
  arm_deadline(self);
  if (options.spec.hang_timeout_s > 0) {
    state.hangs.emplace(options.spec.hang_timeout());
    self->delayed_send(self, kHangTick, tick_a::value);
  }
  return {
      [self](join_a, const JoinRequest& request, const WorkerActor& worker) {
        heard(self, "join");
        return join(self, request, worker);
      },
      [self](program_a, const ProgramSeen& program) {
        heard(self, "program");
        carry_out(self, self->state.job->program(program));
      },
      [self](lease_a, std::uint64_t step) {
        heard(self, "lease");
        self->state.board->trainer().step(step);
        set_log_step(step);
        carry_out(self, self->state.job->lease_wanted(step));
      },
      [self](report_a, const Report& report) {
        heard(self, "report");
        take_report(self, report);
      },
      [self](hashes_a, const StateHashes& hashes) {
        heard(self, "hashes");
        compare_replicas(self, hashes);
      },
      [self](ended_a, const LoopEnded& ended) {
        heard(self, "ended");
        carry_out(self, self->state.job->loop_ended(ended, committed(self), missing(self, ended)));
      },
      [self](unwound_a, std::int32_t worker, std::uint64_t generation) {
        heard(self, "unwound");
        carry_out(self, self->state.job->unwound(worker, generation, committed(self)));
      },
      [self](paused_a, std::int32_t worker, std::uint64_t generation, std::uint64_t step) {
        heard(self, "paused");
        carry_out(self, self->state.job->paused(worker, generation, step));
      },
      [self](preempt_a, const std::string& why) {
        heard(self, "preempt");
        preempt(self, why);
      },
      [self](grace_a) {
        heard(self, "grace");
        carry_out(self, self->state.job->grace_over(self->state.options.spec.grace_s));
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
        carry_out(self, self->state.job->gather_deadline(generation, timeout_s));
      },
      [self](tick_a) { look_for_hangs(self); },
      [self](restart_a, std::int32_t worker) {
        heard(self, "restart");
        start_again(self, worker);
      },
      [self](lost_a, std::int32_t worker) {
        heard(self, "lost");
        if (self->state.workers.has(worker)) return;  // it has come again
        carry_out(self, self->state.job->link_lost(worker, locate(*self->state.board, worker),
                                                   committed(self)));
      },
      [self](cancel_a, std::uint8_t code, const std::string& reason) {
        heard(self, "cancel");
        carry_out(self, self->state.job->cancel(static_cast<Errc>(code), reason));
      },
  };
}

class ActorTrainerLink : public TrainerLink {
 public:
  ActorTrainerLink(const TrainerLinkOptions& options, JobMemory& memory, Board& board)
      : timeout_(options.spec.timeout()),
        trainer_(system_.caf().spawn(trainer_behavior, options, &memory, &board)) {
    if (options.socket_path.empty()) return;
    try {
      listen(options);
    } catch (...) {
      quit();  // or the system would wait for the actor for ever
      throw;
    }
  }
  ~ActorTrainerLink() override { quit(); }

  const std::string& address() const override { return address_; }

  void process_started(int worker, int pid) override {
    caf::anon_send(trainer_, started_a::value, std::int32_t{worker}, std::int32_t{pid});
  }
  void process_ended(const ProcessEnded& ended) override {
    caf::anon_send(trainer_, process_a::value, ended);
  }
  void preempt(const std::string& reason) override {
    caf::anon_send(trainer_, preempt_a::value, reason);
  }
  void cancel(Errc code, const std::string& reason) override {
    caf::anon_send(trainer_, cancel_a::value, static_cast<std::uint8_t>(code), reason);
  }
  std::unique_ptr<WorkerLink> local_worker(int worker) override {
    return make_worker_link(system_, trainer_, worker, timeout_);
  }

 private:
  void listen(const TrainerLinkOptions& options) {
    const TlsConfig& tls = options.spec.tls;
    if (!tls.wanted()) {
      system_.publish(trainer_, options.socket_path, options.token);
      address_ = "unix:" + options.socket_path;
      return;
    }
    address_ = system_.publish(trainer_, tls, options.token);
    logger("weft.trainer")->info("control at {}", address_);
  }
  void quit() { caf::anon_send_exit(trainer_, caf::exit_reason::user_shutdown); }

  System system_;
  std::chrono::milliseconds timeout_;
  TrainerActor trainer_;
  std::string address_;
};

}  // namespace

std::unique_ptr<TrainerLink> TrainerLink::start(TrainerLinkOptions options, JobMemory& memory,
                                                Board& board) {
  return std::make_unique<ActorTrainerLink>(options, memory, board);
}

}  // namespace weft
