#include "actors/device/device_actor.hpp"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <caf/all.hpp>

#include "actors/device/messages.hpp"
#include "actors/link/watched_actor.hpp"
#include "actors/process/failure.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"

namespace weft {
namespace {

/// A plan, and the text that the board has as the chip's source while the chip loads or runs it.
struct DeviceProgram {
  std::shared_ptr<const LoadedPlan> plan{};  ///< null for the number of an on_each_chip() body
  std::string source{};
};

struct DeviceState {
  std::shared_ptr<Engine> engine;
  Recorder recorder;
  int chip = 0;
  std::shared_ptr<DeviceProgress> progress;
  std::vector<DeviceProgram> programs;
  std::optional<std::uint32_t> shown{};    ///< the program whose source the board has
  std::uint64_t step = ~std::uint64_t{0};  // the step of the last run
  std::chrono::steady_clock::time_point last_end = std::chrono::steady_clock::now();
  std::shared_ptr<JobLog> log = current_log();  ///< the log of the thread that makes the actor
  const char* name = "weft.device";
};

using DevicePointer = DeviceActor::stateful_pointer<DeviceState>;

/// Runs `work` unless the device has failed. If `work` throws, the device has failed with that
/// exception.
template <typename Work>
void guarded(DevicePointer self, Work work) {
  auto& state = state_of(self);
  if (state.progress->failed()) return;
  try {
    work(state);
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    const std::string text = describe(thrown).message;
    state.recorder.error(text);
    state.recorder.state(ActorState::failed);
    logger("weft.device")->info("{}", text);
    state.progress->fail(thrown, state.step);
  }
}

/// Shows on the board which program the chip loads or runs. A body of on_each_chip() has no source.
void show(DeviceState& state, std::uint32_t program) {
  if (state.programs.size() <= program) state.programs.resize(program + 1);
  if (std::exchange(state.shown, program) == program) return;
  state.recorder.board.source(state.programs[program].source);
}

template <typename Work>
void run_numbered(DeviceState& state, std::uint64_t run, std::uint64_t step,
                  std::uint64_t fingerprint, Work work) {
  using Seconds = std::chrono::duration<double>;
  const EventWriter& events = state.recorder.events;
  events.step(step);
  if (std::exchange(state.step, step) != step) events.put(EventKind::step, {.number = step});
  events.put(EventKind::run, {.number = run, .value = fingerprint});
  state.recorder.board.state(ActorState::running);
  const auto begin = std::chrono::steady_clock::now();
  work();
  const auto end = std::chrono::steady_clock::now();
  state.progress->record(Seconds(end - begin).count(), Seconds(begin - state.last_end).count());
  state.last_end = end;
  events.put(EventKind::run, {.number = run, .value = fingerprint, .flags = kEventEnds});
  state.recorder.board.state(ActorState::idle);
  state.progress->complete(run);
}

DeviceActor::behavior_type device_behavior(DevicePointer self,
                                           std::shared_ptr<DeviceState> initial) {
  state_of(self) = std::move(*initial);
  state_of(self).engine->settle();  // this runs on the device's own thread
  set_thread_log(state_of(self).log);
  name_this_thread(fmt::format("chip {}", state_of(self).chip).c_str());
  state_of(self).recorder.board.thread(::gettid());
  state_of(self).recorder.state(ActorState::idle);
  route_to_log(self, "weft.device");
  return {
      [self](load_a, const DeviceLoadPtr& load) {
        guarded(self, [&](DeviceState& state) {
          WEFT_CHECK(load->program >= state.programs.size(), load->program);
          state.programs.resize(load->program + 1);
          DeviceProgram& program = state.programs.back();
          const std::string compiler = state.engine->compiler();
          program.source =
              compiler.empty() ? load->site : fmt::format("{}, by {}", load->site, compiler);
          show(state, load->program);
          const StateScope loading(state.recorder, ActorState::compiling);
          program.plan = state.engine->load(*load->plan, load->checks);
        });
      },
      [self](run_a, const DeviceRunPtr& run) {
        guarded(self, [&](DeviceState& state) {
          show(state, run->program);
          WEFT_CHECK(state.programs[run->program].plan != nullptr, run->program);
          run_numbered(state, run->run, run->step, run->fingerprint, [&] {
            Engine& engine = *state.engine;
            if (run->hash) engine.add_to(*run->hash);
            const auto chip = static_cast<std::size_t>(engine.local_index());
            const RunBuffers& buffers = run->buffers.at(chip);
            try {
              engine.run(state.programs.at(run->program).plan, run->step, buffers, run->commit);
            } catch (const IndexFault& fault) {
              if (!run->faulty_item) throw;
              throw Error(fault.code(), fault.what() + run->faulty_item(engine, buffers, fault));
            }
          });
        });
      },
      [self](call_a, const DeviceCallPtr& call) {
        guarded(self, [&](DeviceState& state) {
          show(state, call->program);
          run_numbered(state, call->run, call->step, 0,
                       [&] { state.engine->call(call->step, call->program, call->body); });
        });
      },
  };
}

using WatchedDevice = WatchedActor<DeviceActor, DeviceState>;

class ActorDeviceLink : public DeviceLink {
 public:
  ActorDeviceLink(System& system, std::shared_ptr<DeviceState> state)
      : system_(system),
        progress_(state->progress),
        engine_(state->engine),
        actor_(system.caf().spawn<WatchedDevice, caf::detached>(
            Recorder(state->recorder.board),  // without a ring: this actor records its runs as
                                              // events, not its messages
            [state](DevicePointer self) { return device_behavior(self, state); })) {}

  ~ActorDeviceLink() override {
    caf::scoped_actor self{system_.caf()};
    self->send_exit(actor_, caf::exit_reason::user_shutdown);
    self->wait_for(actor_);
  }

  void load(std::shared_ptr<const DeviceLoad> load) override {
    post(actor_, load_a_v, std::move(load));
  }
  void run(std::shared_ptr<const DeviceRun> run) override { post(actor_, run_a_v, std::move(run)); }
  void call(std::shared_ptr<const DeviceCall> call) override {
    post(actor_, call_a_v, std::move(call));
  }
  const DeviceProgress& progress() const override { return *progress_; }
  Engine& engine() override { return *engine_; }

 private:
  System& system_;
  std::shared_ptr<DeviceProgress> progress_;
  std::shared_ptr<Engine> engine_;
  DeviceActor actor_;
};

}  // namespace

std::unique_ptr<DeviceLink> spawn_device(System& system, std::unique_ptr<Engine> engine,
                                         const Recorder& recorder, int chip,
                                         DeviceFailed on_failure) {
  auto state = std::make_shared<DeviceState>();
  state->engine = std::move(engine);
  state->recorder = recorder;
  state->chip = chip;
  state->progress = std::make_shared<DeviceProgress>(std::move(on_failure));
  const StartingThreads starting(fmt::format("chip {}", chip).c_str());
  return std::make_unique<ActorDeviceLink>(system, std::move(state));
}

}  // namespace weft
