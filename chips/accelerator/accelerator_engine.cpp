#include "chips/accelerator/accelerator_engine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "chips/accelerator/gang.hpp"
#include "chips/engine/arena_chip_collectives.hpp"
#include "chips/engine/state_hash.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct AcceleratorEngine::State {
  State(DeviceKind the_kind, JobMemory& the_memory, const Mesh& the_mesh, int the_position,
        const Recorder& the_recorder, WaitPolicy the_policy, int the_local_index)
      : kind(the_kind),
        memory(the_memory),
        mesh(the_mesh),
        position(the_position),
        local_index(the_local_index),
        chip(chip_on_host(the_mesh, the_position)),
        recorder(the_recorder),
        policy(the_policy),
        communicator(the_memory, the_mesh, the_position, the_recorder, the_policy),
        commits(the_memory, the_mesh, the_position, the_recorder, the_policy),
        collectives(the_memory, the_mesh, the_position, the_local_index, communicator),
        gang(Gang::of(the_kind, the_memory, the_mesh)),
        copies(gang->shared_client(), device(), the_memory.arena(chip)),
        chip_position(std::make_shared<const pjrt::Buffer>(gang->client().from_host(
            device(), &position, TensorType{DType::i32, {}}, pjrt::HostMemory::only_during_call))) {
  }

  const DeviceKind kind;
  JobMemory& memory;
  const Mesh& mesh;
  const int position;
  const int local_index;
  const int chip;  ///< the chip's number on the host, which has all chips of the job
  Recorder recorder;
  const WaitPolicy policy;
  Communicator communicator;  ///< for bodies of on_each_chip()
  Commits commits;
  ArenaChipCollectives collectives;
  const std::shared_ptr<Gang> gang;
  DeviceCopies copies;
  const DeviceCopies::Held chip_position;  ///< `position` on the device
  std::uint64_t committed = 0;             ///< the last step that this engine has committed

  // The run in progress. If there is none, `plan` is null.
  std::shared_ptr<const AcceleratorPlan> plan{};
  std::uint64_t step = 0;
  RunBuffers buffers{};
  RunCommit commit{};
  std::optional<DeviceCopies::Landing> landing{};
  std::shared_ptr<GangRun> run{};  ///< null once `copies` has the results
  std::optional<Clock::time_point> waits_since{};

  std::size_t device() const { return static_cast<std::size_t>(chip); }

  /// Returns whether output `i` is written over the input that it updates.
  bool is_over_input(std::size_t i) const { return buffers.is_over_input(plan->plan.program, i); }
  /// Returns whether the run may take the buffer of the input that output `i` updates.
  bool may_take_input(std::size_t i) const {
    const std::uint64_t offset = buffers.outputs[i];
    return is_over_input(i) && std::ranges::count(buffers.inputs, offset) == 1 &&
           !copies.is_version(offset);
  }

  GangPart part() {
    GangPart part;
    for (const StableHloArgument& of : plan->hlo.arguments) {
      const auto number = static_cast<std::int64_t>(part.arguments.size());
      if (of.role == StableHloArgument::Role::position) {
        part.arguments.push_back(chip_position);
        continue;
      }
      part.arguments.push_back(copies.bind(buffers.inputs[of.number], of.type));
      if (of.result >= 0 && !may_take_input(static_cast<std::size_t>(of.result))) {
        part.kept.push_back(number);
      }
    }
    return part;
  }

  void launch() {
    const Program& program = plan->plan.program;
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const std::int32_t updates = program.outputs[i].updates;
      // If the run commits no new step, its inputs are intermediate state and not a version.
      if (commit.step <= committed && updates >= 0 && !is_over_input(i)) {
        copies.supersede(buffers.inputs[static_cast<std::size_t>(updates)]);
      }
    }
    GangPart brought = part();
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const std::uint64_t offset = buffers.outputs[i];
      if (std::ranges::find(buffers.inputs, offset) != buffers.inputs.end()) continue;
      copies.forget(offset,
                    static_cast<std::size_t>(program.type(program.outputs[i].value).bytes()));
    }
    run = gang->join(chip, plan, std::move(brought));
  }

  /// Returns whether every chip has committed `needed`. If `wait` is true, waits until every chip
  /// has.
  bool have_committed(std::uint64_t needed, bool wait) {
    if (!wait) return commits.reached(needed);
    commits.wait(needed);
    return true;
  }

  /// Copies the state of the run's step to the arena, then commits the step. Returns whether this
  /// is done, which may be false only if `wait` is false.
  bool mirror(bool wait) {
    if (commit.step <= committed) return true;
    if (!landing) {
      if (!have_committed(committed, wait)) return false;
      landing = copies.land();
    }
    landing->finish();
    landing.reset();
    committed = commit.step;
    commits.commit(committed);
    return true;
  }

  std::string awaited_text(int missing) const {
    return fmt::format("chip {} to launch step {}, in which the chips meet in {}", missing, step,
                       plan->first_collective);
  }

  /// Returns whether the run is launched, for which all its chips must have joined. If `wait` is
  /// true, waits until it is launched.
  bool is_launched(bool wait) {
    while (true) {
      const Clock::time_point now = Clock::now();
      const std::optional<int> missing = gang->missing(*run, wait ? now + kSleepSlice : now);
      if (!missing) break;
      if (memory.aborted()) {
        fail(Errc::peer_lost, "{}; chip {} waited for {}", memory.abort_reason(), chip,
             awaited_text(*missing));
      }
      if (!wait) return false;
      if (!waits_since) {
        waits_since = now;
        recorder.board.enter_collective(0, plan->first_collective);
      }
      recorder.board.waiting_for(*missing);
      if (const Clock::duration waited = now - *waits_since; waited >= policy.deadline) {
        fail(Errc::timeout, "chip {} waited {:.3f} s for {}", chip,
             std::chrono::duration<double>(waited).count(), awaited_text(*missing));
      }
    }
    if (std::exchange(waits_since, std::nullopt)) recorder.board.leave_collective();
    return true;
  }

  /// Takes the run's results, and throws the errors of the run.
  void finish() {
    std::vector<pjrt::Buffer> results;
    try {
      results = gang->finish(*run, chip);
    } catch (const pjrt::PluginError& error) {
      fail_for_memory(error, gang->client(), device(), fmt::format("a run of step {}", step),
                      plan->device_bytes());
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const StableHloResult& of = plan->hlo.results[i];
      if (of.role == StableHloResult::Role::faults) {
        std::array<std::int32_t, 2> faults{};
        results[i].download(std::as_writable_bytes(std::span(faults)));
        throw_fault(plan->plan.program, faults);
        continue;
      }
      const bool is_state = plan->plan.program.outputs[of.number].updates >= 0;
      copies.put(buffers.outputs[of.number], of.type, std::move(results[i]),
                 is_state && !is_over_input(of.number));
    }
    run.reset();
  }

  /// Continues the run, and returns whether it has ended. If this throws, the run has ended too.
  bool advance(bool wait) try {
    WEFT_CHECK(plan != nullptr);
    if (!mirror(wait)) return false;
    if (run != nullptr) {
      if (!is_launched(wait)) return false;
      finish();
    }
    if (commit.is_awaited && !have_committed(commit.step, wait)) return false;
    plan.reset();
    return true;
  } catch (...) {
    end_failed();
    throw;
  }

  void end_failed() noexcept {
    landing.reset();
    run.reset();
    waits_since.reset();
    communicator.abandon();
    plan.reset();
  }

  /// Throws no_space if the plan's temporaries don't fit. Only checks devices without memory
  /// statistics, for which the limit is the size of an arena. Other devices report missing memory
  /// themselves.
  void require_room(const Plan& wanted) const {
    const auto stats = gang->client().memory(device());
    if (stats && stats->limit_bytes) return;
    const std::size_t room = memory.buffers_offset() - kArenaTempOffset;
    if (wanted.temp_bytes <= room) return;
    fail(Errc::no_space,
         "the plan has {} bytes of temporaries, but chips of kind {} have {} for them: use more "
         "chips, shard more tensors, or take smaller batches",
         wanted.temp_bytes, to_string(kind), room);
  }
};

AcceleratorEngine::AcceleratorEngine(DeviceKind kind, JobMemory& memory, const Mesh& mesh,
                                     int position, const Recorder& recorder, WaitPolicy policy,
                                     int local_index)
    : ArenaEngine(memory, mesh, position, local_index),
      state_(std::make_unique<State>(kind, memory, mesh, position, recorder, policy, local_index)) {
}

AcceleratorEngine::~AcceleratorEngine() {
  if (state_->plan != nullptr) state_->end_failed();
}

void AcceleratorEngine::reserve(std::uint64_t offset, std::size_t bytes) try {
  ArenaEngine::reserve(offset, bytes);
} catch (const Error& error) {
  if (error.code() != Errc::no_space) throw;
  fail(Errc::no_space,
       "{}; each tensor on a chip of kind {} has a place in the host's memory, and state has two "
       "unless run.failure.state_versions is 1",
       error.what(), to_string(state_->kind));
}

std::string AcceleratorEngine::compiler() const {
  return state_->gang->client().plugin().compiler();
}

void AcceleratorEngine::upload(std::uint64_t offset, std::size_t bytes,
                               const std::function<void(std::byte*)>& fill) {
  state_->copies.forget(offset, bytes);
  ArenaEngine::upload(offset, bytes, fill);
}

void AcceleratorEngine::copy_from(int position, std::uint64_t from, std::uint64_t to,
                                  std::size_t bytes) {
  state_->copies.forget(to, bytes);
  ArenaEngine::copy_from(position, from, to, bytes);
}

void AcceleratorEngine::download(std::uint64_t offset, std::span<std::byte> to) {
  state_->copies.read(offset, to);
}

std::shared_ptr<const LoadedPlan> AcceleratorEngine::load(const Plan& plan, bool checks) {
  state_->require_room(plan);
  return load_accelerator_plan(plan, state_->mesh, *state_->gang, checks);
}

void AcceleratorEngine::start(std::shared_ptr<const LoadedPlan> loaded, std::uint64_t step,
                              const RunBuffers& buffers, RunCommit commit) {
  State& state = *state_;
  WEFT_CHECK(state.plan == nullptr, step);
  auto plan = std::static_pointer_cast<const AcceleratorPlan>(std::move(loaded));
  const Program& program = plan->plan.program;
  buffers.require(program.inputs.size(), program.outputs.size(), step);
  state.plan = std::move(plan);
  state.step = step;
  state.buffers = buffers;
  state.commit = commit;
  state.recorder.board.step(step);
  try {
    state.launch();
  } catch (...) {
    state.end_failed();
    throw;
  }
}

bool AcceleratorEngine::poll() { return state_->advance(false); }

void AcceleratorEngine::wait() { state_->advance(true); }

void AcceleratorEngine::call(std::uint64_t step, std::uint32_t program,
                             const std::function<void(Chip&)>& body) {
  WEFT_CHECK(state_->plan == nullptr, step);
  state_->recorder.board.step(step);
  state_->collectives.run_body(step, program, body);
}

void AcceleratorEngine::add_to(StateHash& hash) {
  std::vector<std::byte> shard;
  hash.add(state_->local_index, [&](std::uint64_t offset, std::size_t bytes) {
    shard.resize(bytes);
    state_->copies.read(offset, shard);
    return shard.data();
  });
}

}  // namespace weft
