#include "chips/pjrt/pjrt_engine.hpp"

#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "chips/engine/arena_chip_collectives.hpp"
#include "chips/pjrt/foreign_calls.hpp"
#include "chips/pjrt/pjrt_plan.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace {

/// A thread that launches runs for a chip's own thread, which must be able to poll. Some plug-ins
/// return from a launch only when the run has ended.
class LaunchThread {
 public:
  ~LaunchThread() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
  }

  /// Begins `work`, which must not throw. The previous work must have ended.
  void begin(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = std::move(work);
    }
    changed_.notify_all();
  }
  /// Waits until the work has ended or there is a Pause. Returns whether the work has ended.
  bool has_ended() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !work_ || is_paused_; });
    return !work_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !work_; });
  }

  /// While a Pause exists, on any thread, the work counts as waiting for another chip.
  class Pause {
   public:
    explicit Pause(LaunchThread& thread) : thread_(thread) { thread_.set_paused(true); }
    ~Pause() { thread_.set_paused(false); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    LaunchThread& thread_;
  };

 private:
  void set_paused(bool is_paused) {
    {
      const std::lock_guard lock(mutex_);
      is_paused_ = is_paused;
    }
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return work_ || ends_; });
      if (!work_) return;
      lock.unlock();
      work_();
      lock.lock();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool is_paused_ = false;
  bool ends_ = false;
  std::jthread thread_{[this] { run(); }};
};

}  // namespace

struct PjrtEngine::State final : pjrt::ForeignReceiver {
  State(JobMemory& the_memory, const Mesh& the_mesh, int the_position, const Recorder& the_recorder,
        WaitPolicy policy, int local_index, CompiledStore the_store)
      : memory(the_memory),
        mesh(the_mesh),
        position(the_position),
        arena(chip_on_host(the_mesh, the_position)),
        base(the_memory.arena(arena)),
        recorder(the_recorder),
        communicator(the_memory, the_mesh, the_position, the_recorder, policy),
        commits(the_memory, the_mesh, the_position, the_recorder, policy),
        collectives(the_memory, the_mesh, the_position, local_index, communicator),
        store(std::move(the_store)) {}

  JobMemory& memory;
  const Mesh& mesh;
  const int position;
  const int arena;        ///< the chip's number in the job's memory
  std::byte* const base;  ///< the beginning of the chip's arena
  Recorder recorder;
  Communicator communicator;  ///< during a run, only the plug-in's threads use it
  Commits commits;
  ArenaChipCollectives collectives;
  const CompiledStore store;
  pjrt::DeviceLease lease = pjrt::CpuDevices::of_process().lease(chips_per_host(mesh));
  pjrt::ForeignContext context{lease.shared_client(), *this};
  pjrt::Buffer chip_position = scalar(position);

  /// A buffer over memory in the arena, and the type that the buffer was made with.
  struct KeptBuffer {
    pjrt::Buffer buffer{};
    TensorType type{};
  };
  /// The buffers by offset in the arena. They are kept between runs, because making a buffer takes
  /// a microsecond. The output of a run replaces the buffer whose memory it was written to.
  std::unordered_map<std::uint64_t, KeptBuffer> places{};
  static constexpr std::size_t kKeptBuffersMax = 4096;

  // The run in progress. If there is none, `plan` is null.
  std::shared_ptr<const PjrtPlan> plan{};
  const PjrtPlan::Version* version = nullptr;
  RunBuffers buffers{};
  RunCommit commit{};
  bool is_launched = false;
  bool is_finished = false;           ///< all results are in the arena
  std::vector<pjrt::Buffer> taken{};  ///< buffers that the run takes for its results
  std::optional<pjrt::LaunchedRun> launched{};
  std::exception_ptr error{};       ///< the exception of the launch
  std::mutex call_mutex{};          ///< guards `call_error` during the run
  std::exception_ptr call_error{};  ///< that of the first failed foreign call; clearer than `error`

  LaunchThread launcher{};  ///< declared last, so that it is destroyed first

  pjrt::Buffer scalar(std::int32_t value) const {
    return lease.client().from_host(lease.device(), &value, pjrt::ElementType::s32, {},
                                    pjrt::HostMemory::only_during_call);
  }

  // Calls `body` for a foreign call, and keeps the first exception. Threads of the plug-in call
  // this: for collectives one after another, for custom ops at any time.
  template <typename Body>
  void receive(Body&& body) try {
    {
      const std::lock_guard lock(call_mutex);
      if (call_error) std::rethrow_exception(call_error);
    }
    body();
  } catch (...) {
    const std::lock_guard lock(call_mutex);
    if (!call_error) call_error = std::current_exception();
    throw;
  }
  void on_collective(const pjrt::ForeignCall& call) override {
    receive([&] {
      const auto& collective = plan->collectives.at(static_cast<std::size_t>(call.number));
      std::memcpy(base + collective.source, call.operands[0], collective.source_bytes);
      {
        const LaunchThread::Pause pause(launcher);
        communicator.run(collective.call);
      }
      std::memcpy(call.results[0], base + collective.destination, collective.destination_bytes);
      std::memcpy(call.results[1], call.operands[1], sizeof(std::int32_t));
    });
  }
  void on_custom_op(const pjrt::ForeignCall& call) override {
    receive([&] {
      plan->custom_ops.at(static_cast<OpId>(call.number)).run(call.operands, call.results[0]);
    });
  }

  /// Returns the home of each output: over the input that it updates, or its own place.
  std::vector<OutputHome> homes() const {
    const Program& program = plan->plan.program;
    std::vector<OutputHome> homes;
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      homes.push_back(buffers.is_over_input(program, i) ? OutputHome::updated : OutputHome::place);
    }
    return homes;
  }

  /// Returns the version of the plan `of` with the homes `at`. Compiles the version if it is
  /// missing, and shows this on the board.
  const PjrtPlan::Version& version_of(const PjrtPlan& of, const std::vector<OutputHome>& at) const {
    const auto found = of.versions.find(at);
    if (found != of.versions.end()) return found->second;
    const StateScope compiling(recorder, ActorState::compiling);
    return add_version(of, at, mesh, lease.client(), store);
  }

  /// Returns the handle of an argument's buffer. If the run writes a result there, moves the buffer
  /// to `taken`.
  void* argument(const StableHloArgument& of) {
    if (of.role == StableHloArgument::Role::position) return chip_position.handle();
    const std::uint64_t offset = of.role == StableHloArgument::Role::input
                                     ? buffers.inputs[of.number]
                                     : buffers.outputs[of.number];
    KeptBuffer& place = places[offset];
    if (place.buffer.handle() == nullptr || !(place.type == of.type)) {
      taken.push_back(std::move(place.buffer));  // another argument may use the old buffer
      place = {
          lease.client().from_host(lease.device(), base + offset, pjrt::element_type(of.type.dtype),
                                   of.type.shape, pjrt::HostMemory::used_in_place),
          of.type};
    }
    void* const handle = place.buffer.handle();
    if (of.result >= 0) taken.push_back(std::move(place.buffer));
    return handle;
  }

  void launch() {
    is_launched = true;
    if (places.size() > kKeptBuffersMax) places.clear();
    std::vector<void*> handles;
    for (const StableHloArgument& of : version->hlo.arguments) handles.push_back(argument(of));
    launcher.begin([this, handles = std::move(handles)] {
      try {
        launched = version->executable->launch(
            handles, {}, lease.client().devices()[lease.device()].handle, context.handle());
        launched->done.await();
      } catch (...) {
        error = std::current_exception();
      }
    });
  }

  /// Copies the results that aren't in the arena yet, and throws the errors of the run.
  void finish() {
    launcher.wait();
    taken.clear();
    if (call_error) std::rethrow_exception(call_error);
    if (error) std::rethrow_exception(error);
    for (std::size_t i = 0; i < version->hlo.results.size(); ++i) {
      const StableHloResult& result = version->hlo.results[i];
      pjrt::Buffer& output = launched->outputs.at(i);
      if (result.role == StableHloResult::Role::faults) {
        std::array<std::int32_t, 2> faults{};
        output.download(std::as_writable_bytes(std::span(faults)));
        throw_fault(plan->plan.program, faults);
        continue;
      }
      const std::uint64_t offset = buffers.outputs[result.number];
      if (output.address() == base + offset) {
        places[offset] = {std::move(output), result.type};
      } else {
        output.download({base + offset, static_cast<std::size_t>(result.type.bytes())});
      }
    }
    launched.reset();
    is_finished = true;
  }

  /// Returns whether all chips have committed the step. If `wait` is true, waits until they have.
  bool may_update(bool wait) {
    if (!wait) return commits.reached(commit.step);
    commits.wait(commit.step);
    return true;
  }

  /// Continues the run, and returns whether it has ended. If this throws, the run has ended too.
  bool advance(bool wait) try {
    WEFT_CHECK(plan != nullptr);
    if (!is_launched) {
      if (plan->has_updates && !may_update(wait)) return false;
      launch();
    }
    if (!is_finished) {
      // After an abort, the run's collectives fail at once, so finish() doesn't wait long.
      if (!wait && !memory.aborted() && !launcher.has_ended()) return false;
      finish();
    }
    if (commit.is_awaited && !may_update(wait)) return false;
    plan.reset();
    return true;
  } catch (...) {
    end_failed();
    throw;
  }

  void end_failed() noexcept {
    launcher.wait();
    taken.clear();
    launched.reset();
    communicator.abandon();
    plan.reset();
  }
};

PjrtEngine::PjrtEngine(JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
                       WaitPolicy policy, int local_index, CompiledStore store)
    : ArenaEngine(memory, mesh, position, local_index),
      state_(std::make_unique<State>(memory, mesh, position, recorder, policy, local_index,
                                     std::move(store))) {}

PjrtEngine::~PjrtEngine() {
  if (state_->plan != nullptr) state_->end_failed();
}

std::string PjrtEngine::compiler() const { return state_->lease.client().plugin().compiler(); }

std::shared_ptr<const LoadedPlan> PjrtEngine::load(const Plan& plan, bool checks) {
  State& state = *state_;
  const std::size_t room = state.memory.buffers_offset() - kArenaTempOffset;
  if (plan.temp_bytes > room) {
    fail(Errc::no_space,
         "the plan has {} bytes of temporaries, but a chip's arena of {} bytes has room for {}: "
         "use more chips, shard more tensors, or take smaller batches",
         plan.temp_bytes, state.memory.arena_capacity(), room);
  }
  const std::shared_ptr<PjrtPlan> loaded =
      load_pjrt_plan(plan, state.mesh, state.position, state.communicator, checks);
  for (const PjrtPlan::Collective& collective : loaded->collectives) {
    state.memory.reserve(state.arena, collective.source, collective.source_bytes);
    state.memory.reserve(state.arena, collective.destination, collective.destination_bytes);
  }
  state.version_of(*loaded, std::vector(plan.program.outputs.size(), OutputHome::place));
  return loaded;
}

void PjrtEngine::start(std::shared_ptr<const LoadedPlan> loaded, std::uint64_t step,
                       const RunBuffers& buffers, RunCommit commit) {
  State& state = *state_;
  WEFT_CHECK(state.plan == nullptr, step);
  auto plan = std::static_pointer_cast<const PjrtPlan>(std::move(loaded));
  const Program& program = plan->plan.program;
  buffers.require(program.inputs.size(), program.outputs.size(), step);
  state.plan = std::move(plan);
  state.buffers = buffers;
  state.commit = commit;
  state.is_launched = state.is_finished = false;
  state.error = state.call_error = nullptr;
  state.communicator.set_step(step);
  state.recorder.board.step(step);
  state.commits.commit(commit.step);
  try {
    state.version = &state.version_of(*state.plan, state.homes());
    if (!state.plan->has_updates) state.launch();
  } catch (...) {
    state.end_failed();
    throw;
  }
}

bool PjrtEngine::poll() { return state_->advance(false); }

void PjrtEngine::wait() { state_->advance(true); }

void PjrtEngine::call(std::uint64_t step, std::uint32_t program,
                      const std::function<void(Chip&)>& body) {
  WEFT_CHECK(state_->plan == nullptr, step);
  state_->recorder.board.step(step);
  state_->collectives.run_body(step, program, body);
}

}  // namespace weft
