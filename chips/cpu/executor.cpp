#include "chips/cpu/executor.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "chips/cpu/cpu_plan.hpp"
#include "chips/cpu/kernels/spread.hpp"
#include "chips/cpu/loops/aligned_buffer.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "chips/engine/arena_chip_collectives.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/reduce/reduce.hpp"
#include "transport/state/commits.hpp"

namespace weft {

struct Executor::State {
  JobMemory& memory;
  kernels::ChipContext chip;
  int local_index;
  int arena;        ///< the chip's number in the job's memory
  std::byte* base;  ///< begin of the chip's arena
  Recorder recorder;
  Communicator communicator;
  Commits commits;
  std::optional<PreparedCall> meeting{};  ///< meeting with the chip's twins on other hosts, if any
  ArenaChipCollectives collectives{memory, chip.mesh, chip.position, local_index, communicator};
  kernels::AlignedBuffer scratch{};  ///< memory of the running kernel; enough for all plans
  std::uint64_t temp_bytes = 0;      ///< maximum of the loaded plans
  std::uint64_t shared_bytes = 0;

  // The run in progress. If there is none, `plan` is null.
  std::shared_ptr<const CpuPlan> plan{};
  RunBuffers buffers{};
  RunCommit commit{};
  std::vector<kernels::KernelArgs> loop_args{};  ///< args of the running loop, at its current tile
  std::vector<std::byte*> loop_streams{};        ///< for the loop's chains, one after the other
  std::vector<std::byte*> addends{};             ///< addends of a tile of sums in the running loop
  kernels::AlignedBuffer held{kHeldBytesMax};
  bool holds = false;                 ///< some outputs are in `held`, not yet in their buffers
  std::vector<std::byte*> outputs{};  ///< addresses at which the run writes its outputs
  std::size_t next = 0;               ///< index of the plan's next step
  bool samples = false;               ///< whether the run's steps are recorded as events
  std::vector<std::int64_t> done{};   ///< by range of the plan: number of ended iterations
  bool in_collective = false;         ///< whether the collective of step `next` was started
  /// The last commit that the chip and its twins have told each other, or tell in what was begun.
  std::uint64_t told = 0;

  std::byte* address(const CpuPlan::Operand& operand) {
    switch (operand.place) {
      case Place::input: return base + buffers.inputs[operand.offset] + operand.within;
      case Place::output: return outputs[operand.offset] + operand.within;
      case Place::tile: return scratch.data() + operand.offset;
      case Place::temp:
      case Place::shared:
      case Place::part: break;
    }
    return memory.arena(operand.chip) + operand.offset;
  }

  kernels::KernelArgs args_of(const CpuPlan::Step& step) {
    kernels::KernelArgs args;
    for (int i = 0; i < step.num_operands; ++i) {
      const auto operand = static_cast<std::size_t>(i);
      args.operands[operand] = address(step.operands[operand]);
    }
    args.is_fill = step.is_fill;
    args.result = address(step.result);
    args.scratch = scratch.data();
    return args;
  }

  void compute(const CpuPlan::FusedLoop& loop) {
    for (const CpuPlan::Step& fill : loop.fills) {
      kernels::KernelArgs args = args_of(fill);
      args.count_max = CpuPlan::kTileSize;
      fill.kernel.run(args);
    }
    loop_args.clear();
    for (const CpuPlan::Step& step : loop.steps) loop_args.push_back(args_of(step));
    loop_streams.clear();
    for (const CpuPlan::Chain& chain : loop.chains) {
      for (const CpuPlan::Operand& stream : chain.streams) loop_streams.push_back(address(stream));
    }
    if (loop.columns > 0) {
      const std::int64_t rows = loop.num_elements / loop.columns;
      loop.chains[0].code->run(loop_streams.data(), rows, loop.columns);
      return;
    }
    for (std::int64_t begin = 0; begin < loop.num_elements; begin += CpuPlan::kTileSize) {
      const std::int64_t count = std::min(loop.num_elements - begin, CpuPlan::kTileSize);
      for (const CpuPlan::SpreadTile& tile : loop.spreads) {
        kernels::write_spread(tile.spread, tile.element_bytes, address(tile.from), begin, count,
                              address(tile.to));
      }
      for (const CpuPlan::AddedTile& tile : loop.sums) add_tile(tile, begin, count);
      compute_tile(loop, count);
    }
  }

  void add_tile(const CpuPlan::AddedTile& tile, std::int64_t begin, std::int64_t count) {
    addends.clear();
    for (const CpuPlan::Operand& addend : tile.addends) addends.push_back(address(addend));
    std::byte* const to = address(tile.to);
    const auto offset = static_cast<std::size_t>(begin * byte_size(tile.dtype));
    reduce(ReduceKind::add, tile.dtype, {addends, offset}, {std::span(&to, 1)}, count);
  }

  /// Runs the steps of a fused loop on a tile of `count` elements, and moves on by one tile.
  void compute_tile(const CpuPlan::FusedLoop& loop, std::int64_t count) {
    std::byte** streams = loop_streams.data();
    for (std::size_t i = 0; i < loop.steps.size(); ++i) {
      const CpuPlan::Step& step = loop.steps[i];
      if (step.chain >= 0) {
        const CpuPlan::Chain& chain = loop.chains[static_cast<std::size_t>(step.chain)];
        chain.code->run(streams, 1, count);
        for (const CpuPlan::Operand& stream : chain.streams) *streams++ += stream.tile_bytes;
        continue;
      }
      kernels::KernelArgs& args = loop_args[i];
      args.count_max = count;
      step.kernel.run(args);
      for (int operand = 0; operand < step.num_operands; ++operand) {
        const auto o = static_cast<std::size_t>(operand);
        args.operands[o] += step.operands[o].tile_bytes;
      }
      args.result += step.result.tile_bytes;
    }
  }

  void compute(const CpuPlan::Step& step) {
    const kernels::KernelArgs args = args_of(step);
    step.kernel.run(args);
    const bool goes_on = step.unless_holds == CpuPlan::kNever || *args.result != std::byte{0};
    if (!goes_on) next = step.unless_holds - 1;
  }

  /// Begins a loop of the program, or ends an iteration and jumps back if another iteration
  /// follows.
  void count(const CpuPlan::Step& step) {
    const auto index = static_cast<std::size_t>(step.range);
    const CpuPlan::Range& range = plan->ranges[index];
    done[index] = step.repeats ? done[index] + 1 : 0;
    if (range.length != 0 && done[index] == range.length) return;
    const std::int64_t number = range.reversed ? range.length - 1 - done[index] : done[index];
    const auto word = static_cast<std::int32_t>(number);
    std::memcpy(address(range.number), &word, sizeof(word));
    if (step.repeats) next = range.body - 1;
  }

  /// Ends the oldest of the collectives that run during other steps. Returns false if it is still
  /// running and `wait` is false.
  bool end_begun(bool wait) {
    in_collective = true;
    if (!communicator.end_begun(wait)) return false;
    in_collective = false;
    return true;
  }

  /// Starts or continues the collective. Returns false if it isn't done and `wait` is false.
  bool meet(const PreparedCall& call, bool wait) {
    if (!std::exchange(in_collective, true)) communicator.start(call);
    if (wait) {
      communicator.wait();
    } else if (!communicator.poll()) {
      return false;
    }
    in_collective = false;
    return true;
  }

  void place_outputs() {
    outputs.clear();
    for (const std::uint64_t offset : buffers.outputs) outputs.push_back(base + offset);
    for (const CpuPlan::Held& output : plan->held) {
      outputs[output.output] = held.data() + output.offset;
    }
    holds = !plan->held.empty();
  }

  void release_held() {
    for (const CpuPlan::Held& output : plan->held) {
      std::byte* place = base + buffers.outputs[output.output];
      std::memcpy(place, std::exchange(outputs[output.output], place), output.bytes);
    }
    holds = false;
  }

  /// Makes sure that the chip's twins on other hosts know of its commit. Only collectives inform
  /// twins, so this runs one unless the twins have met since the commit. All chips do so in the
  /// same runs: those that commit. Returns false if a twin is missing and `wait` is false.
  bool tell_hosts(bool wait) {
    if (!meeting || told >= commit.step) return true;
    if (!meet(*meeting, wait)) return false;
    told = commit.step;
    return true;
  }

  /// Returns true once no chip needs the state's versions that the plan overwrites next. Returns
  /// false if a chip still needs them and `wait` is false.
  bool may_update(bool wait) {
    if (!tell_hosts(wait)) return false;
    communicator.check_begun();
    if (wait) {
      commits.wait(commit.step, [this] { communicator.check_begun(); });
    } else if (!commits.reached(commit.step)) {
      return false;
    }
    if (holds) release_held();
    return true;
  }

  void note(const CpuPlan::Step& step) const {
    const auto index = static_cast<std::uint32_t>(next);
    recorder.events.position(step.text, index);
    if (samples) recorder.events.put(EventKind::plan_step, {.number = index, .text = step.text});
  }

  /// Returns whether the steps of this run are recorded. The result is the same on all chips. At
  /// level `sampled`, a plan's first runs are recorded, because it may have no others.
  bool is_sampled(std::uint64_t step) const {
    const TraceLevel level = recorder.events.level();
    return level == TraceLevel::full ||
           (level == TraceLevel::sampled && (step % 16 == 0 || plan->runs < 3));
  }

  /// Continues the run, and returns whether it is done. An exception ends the run.
  bool advance(bool wait) try {
    WEFT_CHECK(plan != nullptr);
    for (; next < plan->steps.size(); ++next) {
      const CpuPlan::Step& step = plan->steps[next];
      if (next == plan->first_update && !may_update(wait)) return false;
      if (!in_collective) note(step);
      if (step.range >= 0) {
        count(step);
      } else if (step.loop >= 0) {
        compute(plan->loops[static_cast<std::size_t>(step.loop)]);
      } else if (step.call < 0) {
        compute(step);
      } else {
        const auto call = static_cast<std::size_t>(step.call);
        const bool goes_on =
            step.goes_on && !in_collective && communicator.begin(plan->calls[call]);
        if (!goes_on && !(step.waits ? end_begun(wait) : meet(plan->calls[call], wait))) {
          return false;
        }
        if (meeting && plan->meets_hosts[call]) told = std::max(told, commit.step);
      }
    }
    if (!tell_hosts(wait)) return false;
    const bool has_to_wait = next == plan->first_update || commit.is_awaited;
    if (has_to_wait && !may_update(wait)) return false;
    plan.reset();
    return true;
  } catch (...) {
    communicator.abandon();
    plan.reset();
    throw;
  }
};

Executor::Executor(JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
                   WaitPolicy policy, int local_index, std::unique_ptr<CollectiveTier> network)
    : ArenaEngine(memory, mesh, position, local_index) {
  const int arena = chip_on_host(mesh, position);
  const bool meets_hosts = network != nullptr && mesh.dcn_atoms() != 0;
  state_.reset(new State{
      .memory = memory,
      .chip = {mesh, position, kernels::make_matmul_stream()},
      .local_index = local_index,
      .arena = arena,
      .base = memory.arena(arena),
      .recorder = recorder,
      .communicator = Communicator(memory, mesh, position, recorder, policy, std::move(network)),
      .commits = Commits(memory, mesh, position, recorder, policy),
  });
  if (!meets_hosts) return;
  state_->meeting = state_->communicator.prepare({.kind = CollectiveKind::barrier,
                                                  .atoms = mesh.list(mesh.dcn_atoms()),
                                                  .name = "hosts have begun the step"});
}

// Abandons collectives that a run in progress may have begun.
Executor::~Executor() { state_->communicator.abandon(); }

std::string Executor::limitation() {
  if (!kernels::kernel_path().compiles) return {};
  const std::string refusal = jit::compile_refusal();
  if (refusal.empty()) return {};
  return fmt::format(
      "this process may not execute memory that it has written ({}): loops over elementwise ops "
      "run in tiles, which is slower; allow it (SELinux: execmem), or set WEFT_KERNELS=tiles",
      refusal);
}

std::shared_ptr<const LoadedPlan> Executor::load(const Plan& plan, bool checks) {
  JobMemory& memory = state_->memory;
  std::uint64_t temp_bytes = std::max(state_->temp_bytes, plan.temp_bytes);
  const std::uint64_t shared_bytes = std::max(state_->shared_bytes, plan.shared_bytes);
  const std::size_t room = memory.buffers_offset() - kArenaTempOffset;
  if (shared_bytes > 0) temp_bytes = std::max<std::uint64_t>(temp_bytes, kStagingBytes);
  if (temp_bytes + shared_bytes > room) {
    fail(Errc::no_space,
         "the plan has {} bytes of temporaries and {} of values that chips share, but a chip's "
         "arena of {} bytes has room for {}: use more chips, shard more tensors, or take "
         "smaller batches",
         plan.temp_bytes, plan.shared_bytes, memory.arena_capacity(), room);
  }
  // Below the buffers, temporaries begin at the lower end and shared values at the upper end. They
  // must not overlap, not even between different plans or calls: another chip may already store
  // shared values of this plan here while this chip still uses temporaries of an earlier plan or
  // call.
  const std::uint64_t shared_begin = memory.buffers_offset() - plan.shared_bytes;
  auto loaded = std::make_shared<const CpuPlan>(load_plan(
      plan, state_->chip, state_->communicator, shared_begin, state_->recorder.events, checks));
  memory.reserve(state_->arena, kArenaTempOffset, plan.temp_bytes);
  for (const int chip : loaded->shared_in) memory.reserve(chip, shared_begin, plan.shared_bytes);
  state_->temp_bytes = temp_bytes;
  state_->shared_bytes = shared_bytes;
  if (state_->scratch.size() < loaded->scratch_bytes) {
    state_->scratch = kernels::AlignedBuffer(loaded->scratch_bytes);
  }
  return loaded;
}

void Executor::start(std::shared_ptr<const LoadedPlan> loaded, std::uint64_t step,
                     const RunBuffers& buffers, RunCommit commit) {
  WEFT_CHECK(state_->plan == nullptr, step);
  auto plan = std::static_pointer_cast<const CpuPlan>(std::move(loaded));
  buffers.require(plan->num_inputs, plan->num_outputs, step);
  state_->plan = std::move(plan);
  state_->buffers = buffers;
  state_->place_outputs();
  state_->samples = state_->is_sampled(step);
  ++state_->plan->runs;
  state_->next = 0;
  state_->done.assign(state_->plan->ranges.size(), 0);
  state_->in_collective = false;
  state_->communicator.set_step(step);
  state_->recorder.board.step(step);
  state_->commit = commit;
  state_->commits.commit(commit.step);
}

bool Executor::poll() { return state_->advance(false); }

void Executor::wait() { state_->advance(true); }

void Executor::call(std::uint64_t step, std::uint32_t program,
                    const std::function<void(Chip&)>& body) {
  WEFT_CHECK(state_->plan == nullptr, step);
  state_->recorder.board.step(step);
  state_->collectives.run_body(step, program, body);
}

}  // namespace weft
