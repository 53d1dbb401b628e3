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

/// Counts the messages to the trainer. Their numbers are the same as the trainer's, unless two
/// threads send at once.
class SentMessages {
 public:
  explicit SentMessages(const EventWriter& events) : events_(events) {}

  void note(const std::string& name) {
    const std::uint64_t number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
    events_.put(EventKind::message_out, {.number = number, .text = events_.intern(name)});
  }

 private:
  const EventWriter events_;  // writes to the ring that all threads share
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
  state_of(self).sent->note(to_string(name));
  send_by(self, state_of(self).trainer, name, content...);
}

WorkerActor::behavior_type worker_behavior(WorkerSelf self, int worker,
                                           const std::shared_ptr<Permits>& permits,
                                           const TrainerActor& trainer,
                                           std::shared_ptr<SentMessages> sent) {
  state_of(self).worker = worker;
  state_of(self).permits = permits;
  state_of(self).sent = std::move(sent);
  static_cast<WatchedWorker*>(self)->find_origins_by([self](const caf::strong_actor_ptr&) {
    return MessageOrigin{.sequence = ++state_of(self).received};  // only the trainer sends messages
  });
  state_of(self).trainer = trainer;
  route_to_log(self, "weft.worker");
  watch(self, trainer,
        [self](const caf::actor_addr&) { state_of(self).permits->cancel("the trainer is gone"); });
  return {
      [self](start_a, const Start& start) { state_of(self).permits->start(start); },
      [self](unwind_a, const std::string& reason) { state_of(self).permits->unwind(reason); },
      [self](asked_a, std::uint32_t sequence, std::uint64_t run) {
        if (const auto known = state_of(self).permits->asked(sequence, run)) {
          answer(self, program_a_v, *known);
        }
      },
      [self](admit_a, std::uint32_t programs) { state_of(self).permits->admit(programs); },
      [self](grant_a, std::uint64_t steps) { state_of(self).permits->grant(steps); },
      [self](peer_ended_a, std::int32_t other, std::uint64_t runs, const std::string& last) {
        if (const auto wrong = state_of(self).permits->peer_ended(other, runs, last)) {
          answer(self, ended_a_v, *wrong);
        }
      },
      [self](join_parts_a, std::uint64_t generation, std::uint64_t save) {
        state_of(self).permits->join_parts(generation, save);
      },
      [self](drop_parts_a, std::uint64_t generation, std::uint64_t save) {
        state_of(self).permits->drop_parts(generation, save);
      },
      [self](saved_a, const SaveEnded& ended) { state_of(self).permits->saved(ended); },
      [self](pause_a) {
        const std::uint64_t step = state_of(self).permits->pause();
        answer(self, paused_a_v, std::int32_t{state_of(self).worker},
               state_of(self).permits->generation(), step);
      },
      [self](end_at_a, std::uint64_t step) { state_of(self).permits->end_at(step); },
      [self](hold_a) {
        const std::uint64_t step = state_of(self).permits->hold();
        answer(self, held_a_v, std::int32_t{state_of(self).worker},
               state_of(self).permits->generation(), step);
      },
      [self](let_go_a, const CommandList& list) { state_of(self).permits->let_go(list.commands); },
      [self](wires_a, const WireAddresses& all) { state_of(self).permits->wires(all); },
      [self](read_a, const ReadElsewhere& read) {
        if (const auto wrong = state_of(self).permits->read_elsewhere(read)) {
          answer(self, ended_a_v, *wrong);
        }
      },
      [self](cancel_a, const std::string& reason) { state_of(self).permits->cancel(reason); },
      [self](stop_a) { state_of(self).permits->stop(); },
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
    permits().on_first_question([trainer] { post(trainer, asks_a_v); });
  }

  ~ActorWorkerLink() override { caf::anon_send_exit(worker_, caf::exit_reason::user_shutdown); }

  Assignment join(const JoinRequest& request) override {
    caf::scoped_actor self{system_.caf()};
    Assignment assignment;
    request_by(self, trainer_, timeout_, join_a_v, request, worker_)
        .receive([&](Assignment& answer) { assignment = std::move(answer); },
                 [&](const caf::error& error) {
                   fail(error == caf::sec::request_timeout ? Errc::timeout : Errc::io,
                        "join of worker {}: {}", request.worker, caf::to_string(error));
                 });
    return assignment;
  }
  void show_program(const ProgramSeen& program) override { send(program_a_v, program); }
  void want_lease(std::uint64_t step) override { send(lease_a_v, step); }
  void report(const Report& report) override { send(report_a_v, report); }
  void preempt(const std::string& reason) override { send(preempt_a_v, reason); }
  void state_hashed(const StateHashes& hashes) override { send(hashes_a_v, hashes); }
  void data_hashed(const DataHashes& hashes) override { send(data_a_v, hashes); }
  void part_written(const PartWritten& part) override { send(part_a_v, part); }
  void save_ended(const SaveEnded& ended) override { send(saved_a_v, ended); }
  void commands_read(const CommandsRead& read) override { send(read_a_v, read); }
  void awaits_commands(const CommandsAwaited& awaited) override { send(waits_a_v, awaited); }
  void loop_ended(const LoopEnded& ended) override { send(ended_a_v, ended); }
  void unwound(std::uint64_t generation, std::uint64_t committed) override {
    send(unwound_a_v, std::int32_t{rank_}, generation, committed);
  }
  void wires_listen(const WireAddresses& addresses) override { send(wires_a_v, addresses); }
  void wire_lost(const WireLost& lost) override { send(wire_lost_a_v, lost); }
  std::unique_ptr<DeviceLink> start_device(std::unique_ptr<Engine> engine, const Recorder& recorder,
                                           int chip, DeviceFailed on_failure) override {
    return spawn_device(system_, std::move(engine), recorder, chip, std::move(on_failure));
  }

 private:
  template <typename Name, typename... Content>
  void send(Name name, const Content&... content) {
    sent_->note(to_string(name));
    post_as(worker_, trainer_, name, content...);
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
  auto system = std::make_unique<System>();
  System& reference = *system;
  const auto dial = [&] {
    if (environment.place.count > 1) return reference.dial(environment.place, timeout);
    if (!environment.tls.wanted()) {
      return reference.dial(socket_path(address), environment.token, timeout);
    }
    return reference.dial(tls_address(address), environment.tls, environment.token, timeout);
  };
  const TrainerActor trainer = dial();
  return std::make_unique<ActorWorkerLink>(std::move(system), reference, trainer,
                                           environment.process_index, timeout, recorder);
}

}  // namespace weft
