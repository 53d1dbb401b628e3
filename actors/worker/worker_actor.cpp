#include "actors/worker/worker_actor.hpp"

#include <atomic>
#include <utility>

#include <caf/all.hpp>

#include <weft/tensor/error.hpp>

#include "actors/device/device_actor.hpp"
#include "actors/link/watched_actor.hpp"
#include "actors/process/log.hpp"

namespace weft {
namespace {

/// Numbers the messages to the trainer in the order in which the trainer counts them, unless two
/// threads send at once.
class SentMessages {
 public:
  explicit SentMessages(const EventWriter& events) : events_(events) {}

  void note(caf::atom_value name) {
    const std::uint64_t number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
    events_.put(EventKind::message_out,
                {.number = number, .text = events_.intern(caf::to_string(name))});
  }

 private:
  const EventWriter events_;  // for the ring that all threads write
  std::atomic<std::uint64_t> count_{0};
};

struct WorkerState {
  int worker = -1;
  std::shared_ptr<Permits> permits;
  TrainerActor trainer;
  std::shared_ptr<SentMessages> sent;
  std::uint64_t received = 0;
  const char* name = "weft.worker";
};

using WatchedWorker = WatchedActor<WorkerActor, WorkerState>;
using WorkerSelf = WorkerActor::stateful_pointer<WorkerState>;

template <typename Name, typename... Content>
void answer(WorkerSelf self, Name name, const Content&... content) {
  self->state.sent->note(name);
  self->send(self->state.trainer, name, content...);
}

WorkerActor::behavior_type worker_behavior(WorkerSelf self, int worker,
                                           const std::shared_ptr<Permits>& permits,
                                           const TrainerActor& trainer,
                                           std::shared_ptr<SentMessages> sent) {
  self->state.worker = worker;
  self->state.permits = permits;
  self->state.sent = std::move(sent);
  static_cast<WatchedWorker*>(self)->find_origins_by([self](const caf::strong_actor_ptr&) {
    return MessageOrigin{.sequence = ++self->state.received};  // all messages come from the trainer
  });
  self->state.trainer = trainer;
  route_to_log(self, "weft.worker");
  self->monitor(trainer);
  self->set_down_handler([self](caf::scheduled_actor*, caf::down_msg&) {
    self->state.permits->cancel("the trainer is gone");
  });
  return {
      [self](start_a, const Start& start) { self->state.permits->start(start); },
      [self](unwind_a, const std::string& reason) { self->state.permits->unwind(reason); },
      [self](asked_a, std::uint32_t sequence, std::uint64_t run) {
        if (const auto known = self->state.permits->asked(sequence, run)) {
          answer(self, program_a::value, *known);
        }
      },
      [self](admit_a, std::uint32_t programs) { self->state.permits->admit(programs); },
      [self](grant_a, std::uint64_t steps) { self->state.permits->grant(steps); },
      [self](peer_ended_a, std::int32_t other, std::uint64_t runs, const std::string& last) {
        if (const auto wrong = self->state.permits->peer_ended(other, runs, last)) {
          answer(self, ended_a::value, *wrong);
        }
      },
      [self](join_parts_a, std::uint64_t generation, std::uint64_t save) {
        self->state.permits->join_parts(generation, save);
      },
      [self](drop_parts_a, std::uint64_t generation, std::uint64_t save) {
        self->state.permits->drop_parts(generation, save);
      },
      [self](saved_a, const SaveEnded& ended) { self->state.permits->saved(ended); },
      [self](pause_a) {
        const std::uint64_t step = self->state.permits->pause();
        answer(self, paused_a::value, std::int32_t{self->state.worker},
               self->state.permits->generation(), step);
      },
      [self](end_at_a, std::uint64_t step) { self->state.permits->end_at(step); },
      [self](hold_a) {
        const std::uint64_t step = self->state.permits->hold();
        answer(self, held_a::value, std::int32_t{self->state.worker},
               self->state.permits->generation(), step);
      },
      [self](let_go_a, const CommandList& list) { self->state.permits->let_go(list.commands); },
      [self](read_a, const ReadElsewhere& read) {
        if (const auto wrong = self->state.permits->read_elsewhere(read)) {
          answer(self, ended_a::value, *wrong);
        }
      },
      [self](cancel_a, const std::string& reason) { self->state.permits->cancel(reason); },
      [self](stop_a) { self->state.permits->stop(); },
  };
}

class ActorWorkerLink : public WorkerLink {
 public:
  ActorWorkerLink(std::unique_ptr<System> own, System& system, const TrainerActor& trainer,
                  int worker, std::chrono::milliseconds timeout, const LinkRecorder& recorder)
      : WorkerLink(std::make_shared<Permits>(worker, timeout)),
        own_(std::move(own)),
        system_(system),
        trainer_(trainer),
        rank_(worker),
        sent_(std::make_shared<SentMessages>(recorder.threads)),
        worker_(system.caf().spawn<WatchedWorker>(
            recorder.actor,
            [worker, trainer, permits = shared_permits(), sent = sent_](auto* self) {
              return worker_behavior(self, worker, permits, trainer, sent);
            })),
        timeout_(timeout) {
    permits().on_first_question([trainer] { caf::anon_send(trainer, asks_a::value); });
  }

  ~ActorWorkerLink() override { caf::anon_send_exit(worker_, caf::exit_reason::user_shutdown); }

  Assignment join(const JoinRequest& request) override {
    caf::scoped_actor self{system_.caf()};
    Assignment assignment;
    self->request(trainer_, timeout_, join_a::value, request, worker_)
        .receive([&](Assignment& answer) { assignment = std::move(answer); },
                 [&](const caf::error& error) {
                   fail(error == caf::sec::request_timeout ? Errc::timeout : Errc::io,
                        "join of worker {}: {}", request.worker, caf::to_string(error));
                 });
    return assignment;
  }
  void show_program(const ProgramSeen& program) override { send(program_a::value, program); }
  void want_lease(std::uint64_t step) override { send(lease_a::value, step); }
  void report(const Report& report) override { send(report_a::value, report); }
  void preempt(const std::string& reason) override { send(preempt_a::value, reason); }
  void state_hashed(const StateHashes& hashes) override { send(hashes_a::value, hashes); }
  void data_hashed(const DataHashes& hashes) override { send(data_a::value, hashes); }
  void part_written(const PartWritten& part) override { send(part_a::value, part); }
  void save_ended(const SaveEnded& ended) override { send(saved_a::value, ended); }
  void commands_read(const CommandsRead& read) override { send(read_a::value, read); }
  void awaits_commands(const CommandsAwaited& awaited) override { send(waits_a::value, awaited); }
  void loop_ended(const LoopEnded& ended) override { send(ended_a::value, ended); }
  void unwound(std::uint64_t generation) override {
    send(unwound_a::value, std::int32_t{rank_}, generation);
  }
  std::unique_ptr<DeviceLink> start_device(std::unique_ptr<Engine> engine, const Recorder& recorder,
                                           int chip, DeviceFailed on_failure) override {
    return spawn_device(system_, std::move(engine), recorder, chip, std::move(on_failure));
  }

 private:
  template <typename Name, typename... Content>
  void send(Name name, const Content&... content) {
    sent_->note(name);
    caf::send_as(worker_, trainer_, name, content...);
  }

  std::unique_ptr<System> own_;
  System& system_;
  TrainerActor trainer_;
  int rank_;
  std::shared_ptr<SentMessages> sent_;
  WorkerActor worker_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::unique_ptr<WorkerLink> make_worker_link(System& system, const TrainerActor& trainer,
                                             int worker, std::chrono::milliseconds timeout,
                                             const LinkRecorder& recorder) {
  return std::make_unique<ActorWorkerLink>(nullptr, system, trainer, worker, timeout, recorder);
}

std::unique_ptr<WorkerLink> WorkerLink::connect(const WorkerEnvironment& environment,
                                                std::chrono::milliseconds timeout,
                                                const LinkRecorder& recorder) {
  const std::string& address = environment.coordinator_address;
  const bool over_tls = environment.tls.wanted();
  auto system = std::make_unique<System>();
  System& reference = *system;
  const TrainerActor trainer =
      over_tls ? reference.dial(tls_address(address), environment.tls, environment.token, timeout)
               : reference.dial(socket_path(address), environment.token, timeout);
  return std::make_unique<ActorWorkerLink>(std::move(system), reference, trainer,
                                           environment.process_index, timeout, recorder);
}

}  // namespace weft
