#include "actors/runtime/worker_runtime.hpp"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "actors/process/log.hpp"
#include "actors/runtime/arena_buffer.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/mesh/shard_copy.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/tensor/loop_threads.hpp"
#include "spmd/tensor/node.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace {

/// Appends the buffer as the next input or output of the run.
void use(const BufferPtr& buffer, DeviceRun& run, std::vector<std::uint64_t> RunBuffers::*offsets) {
  auto& placed = static_cast<ArenaBuffer&>(*buffer);
  placed.used_by(run.run);
  for (std::size_t chip = 0; chip < run.buffers.size(); ++chip) {
    (run.buffers[chip].*offsets).push_back(placed.offset(chip));
  }
}

/// Returns a function that finds the item with a faulty value; null if no loader has read any
/// input. The function copies what it needs from the buffers, so that it doesn't keep their memory.
FaultyItem faulty_item_of(const std::vector<BufferPtr>& inputs, const Mesh& mesh,
                          std::span<const int> positions) {
  std::vector<LoadedRows> loaded;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& origin = static_cast<const ArenaBuffer&>(*inputs[i]).origin();
    if (origin == nullptr) continue;
    loaded.push_back(
        {static_cast<std::uint32_t>(i), inputs[i]->type(), inputs[i]->sharding(), origin});
  }
  if (loaded.empty()) return {};
  return [loaded = std::move(loaded), &mesh, positions](Engine& engine, const RunBuffers& buffers,
                                                        const IndexFault& fault) {
    const int position = positions[static_cast<std::size_t>(engine.local_index())];
    return faulty_item(loaded, mesh, position, engine, buffers, fault);
  };
}

}  // namespace

WorkerRuntime::WorkerRuntime(const Mesh& mesh, const Mesh& memory_mesh, std::vector<int> positions,
                             std::vector<std::unique_ptr<DeviceLink>> devices, JobMemory& memory,
                             WorkerLink& link, const Recorder& recorder,
                             WorkerRuntimeOptions options)
    : mesh_(mesh),
      positions_(std::move(positions)),
      devices_(std::move(devices)),
      memory_(memory),
      link_(link),
      recorder_(recorder),
      resume_from_(std::move(options.resume_from)),
      options_(std::move(options)),
      loop_thread_(::gettid()),
      store_(options_.plan_dir, mesh_, options_.target),
      listing_(options_.worker == 0 ? options_.dump_dir : "",
               options_.worker == 0 ? options_.debug : 0),
      program_list_(options_.run_dir) {
  set_thread_number([] { return int{::gettid()}; });
  std::vector<BufferPool::Range> taken;
  if (options_.has_mesh && options_.keeps_state) {
    const auto copy = [this](std::size_t chip, const KeptShard& from, std::uint64_t to,
                             std::size_t bytes) {
      devices_[chip]->engine().copy_from(from.position, from.offset, to, bytes);
    };
    state_.emplace(memory_, memory_mesh, positions_, copy, options_.resume_step,
                   options_.state_source);
    taken = state_->taken();
  }
  const auto reserve = [this](std::uint64_t offset, std::size_t bytes) {
    for (const auto& device : devices_) device->engine().reserve(offset, bytes);
  };
  pool_ = std::make_shared<BufferPool>(
      BufferPool::Range{memory_.buffers_offset(), memory_.arena_capacity()}, reserve,
      std::move(taken));
  if (state_) state_->hold(pool_);
  pool_->on_no_room([this] {
    if (holds_.empty()) return false;
    const CheckpointWait waiting(recorder_, step_, *this);
    return holds_.wait_for_one();
  });
  step_ = commits_ = options_.resume_step;
  pool_->begin_step(step_);
  recorder_.board.step(step_);
  recorder_.events.step(step_);
  recorder_.events.put(EventKind::generation, {.number = options_.generation});
  set_log_step(step_);
}

WorkerRuntime::~WorkerRuntime() = default;

Runtime::RunResult WorkerRuntime::run(const Program& program, const Fingerprint& key,
                                      std::span<const Binding> inputs, const RunSite& site) {
  WEFT_CHECK(inputs.size() == program.inputs.size(), inputs.size(), program.inputs.size());
  recorder_.at(site.loc);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto* bound = std::get_if<BoundBuffer>(&inputs[i]);
    if (bound != nullptr) require_own(*bound->buffer, program.inputs[i].name, &site.loc);
  }
  const auto& [known, plan] = find_or_compile(program, key, site);
  const bool checks = site.detects_anomaly || options_.detect_anomaly;
  const std::uint32_t number = checks ? find_checked(known, site) : known;
  Executed& executed = executed_.at(number);
  require_known(executed, inputs);
  if (resume_from_) resume_from_->require_taken(program.inputs, inputs);
  for (LoopObserver* each : observers_) each->runs(plan->program);
  const bool is_compared = options_.check_data != DataChecks::never;
  if (is_due(options_.check_data, executed.runs + 1) ||
      (is_compared && (!put_.tensors.empty() || sets_state(program, inputs)))) {
    tell_data(hash_data(program, inputs));
  } else if (is_compared && site.num_numbers > 0) {
    // The last inputs are numbers that change from run to run (ChangingNumbers). Like a program's
    // constants, they are compared in every run.
    tell_data(hash_data(program, inputs, inputs.size() - site.num_numbers));
  } else if (!noted_.tensors.empty()) {
    tell_data({});
  }
  listing_.debug(2, [&] { return fmt::format("program {} runs for {}", number, to_string(site)); });
  holds_.drop_ended();
  await_room();
  auto request = std::make_shared<DeviceRun>();
  request->program = number;
  request->run = runs_ + 1;
  request->step = step_;
  request->fingerprint = executed.fingerprint;
  request->buffers.resize(devices_.size());
  for (RunBuffers& buffers : request->buffers) {
    buffers.inputs.reserve(inputs.size());
    buffers.outputs.reserve(program.outputs.size());
  }
  if (state_) state_->used(program.inputs);
  if (!unused_.empty()) {
    for (const ProgramInput& input : program.inputs) unused_.erase(input.name);
  }
  RunResult result;
  result.input_buffers.reserve(inputs.size());
  result.outputs.reserve(program.outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    result.input_buffers.push_back(bind(*plan, i, inputs[i]));
    use(result.input_buffers.back(), *request, &RunBuffers::inputs);
  }
  request->faulty_item = faulty_item_of(result.input_buffers, mesh_, positions_);
  note_inputs(executed, inputs, result);
  const auto updates = [](const ProgramOutput& output) { return output.updates >= 0; };
  if (site.ends_step || std::ranges::any_of(program.outputs, updates)) commit(*request);
  request->commit.step = commits_;
  std::uint64_t donated = 0;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    if (plan->program.outputs[i].updates < 0) {
      result.outputs.push_back(make_output(*plan, i));
    } else {
      const auto updated = static_cast<std::size_t>(plan->program.outputs[i].updates);
      const BufferPtr& now = result.input_buffers[updated];
      result.outputs.push_back(next_version(executed, i, inputs[updated], now));
      if (result.outputs.back() == now) ++donated;
    }
    use(result.outputs.back(), *request, &RunBuffers::outputs);
  }
  if (donated > 0) metrics().count("DonateBuffer", donated);
  begin_run(number, site);
  for (const auto& device : devices_) device->run(request);
  note_outputs(executed, result);
  ++executed.runs;
  for (LoopObserver* each : observers_) each->ran(program, site);
  return result;
}

void WorkerRuntime::note_data(std::string label, std::uint64_t hash) {
  noted_.tensors.push_back(std::move(label));
  noted_.hashes.push_back(hash);
}

/// Sends the hashes to the trainer, together with the hashes of state that the host has set and of
/// items that were read since the last run.
void WorkerRuntime::tell_data(DataHashes hashes) {
  hashes.num_states += static_cast<std::uint32_t>(put_.tensors.size());
  hashes.tensors.insert(hashes.tensors.begin(), put_.tensors.begin(), put_.tensors.end());
  hashes.hashes.insert(hashes.hashes.begin(), put_.hashes.begin(), put_.hashes.end());
  put_ = {};
  hashes.tensors.insert(hashes.tensors.end(), noted_.tensors.begin(), noted_.tensors.end());
  hashes.hashes.insert(hashes.hashes.end(), noted_.hashes.begin(), noted_.hashes.end());
  noted_ = {};
  hashes.worker = options_.worker;
  hashes.generation = options_.generation;
  hashes.step = step_;
  hashes.run = runs_ + 1;
  link_.data_hashed(hashes);
}

void WorkerRuntime::await_room() const {
  if (runs_ < kRunsUnderWay) return;
  const StateScope running(recorder_, ActorState::running);
  wait_for_run(runs_ + 1 - kRunsUnderWay);
}

/// Counts a run. Must be called after everything that may fail, because drain() waits for every
/// counted run.
void WorkerRuntime::begin_run(std::uint32_t program, const RunSite& site) {
  if (const auto known = link_.permits().begin_run(runs_ + 1, program, step_, site)) {
    const StateScope admission(recorder_, ActorState::admission, EventKind::admission,
                               {.number = known->sequence, .value = known->fingerprint_low});
    link_.show_program(*known);
    link_.permits().wait_admitted(known->sequence, runs_ + 1);
  }
  ++runs_;
  last_site_ = site;
}

BufferPtr WorkerRuntime::bind(const Plan& plan, std::size_t i, const Binding& binding) {
  const TensorType& type = plan.input_types[i];
  const ProgramInput& input = plan.program.inputs[i];
  if (const auto* bound = std::get_if<BoundBuffer>(&binding)) {
    WEFT_CHECK(bound->buffer->sharding().same_layout(input.sharding), type.to_string());
    return bound->buffer;
  }
  const std::uint64_t run = runs_ + 1;
  const std::uint64_t completed = run > kRunsUnderWay ? run - kRunsUnderWay : 0;
  const BufferPtr buffer = make_written_by_host(type, input, completed);
  if (const auto* source = std::get_if<SourcePtr>(&binding)) {
    read_source(**source, *buffer);
  } else {
    upload(*std::get<HostData>(binding), *buffer);
  }
  return buffer;
}

BufferPtr WorkerRuntime::make_output(const Plan& plan, std::size_t i) {
  const ProgramOutput& output = plan.program.outputs[i];
  const std::int64_t bytes = plan.program.type(output.value).bytes();
  const std::uint64_t offset = pool_->allocate(bytes, BufferPool::kDeviceWrites);
  return std::make_shared<ArenaBuffer>(plan.output_types[i], output.sharding, pool_,
                                       BlockKind::plain, offset, bytes);
}

/// Throws invalid_argument if the buffer belongs to another job. This can happen because a tensor
/// may outlive the job whose chips hold it.
void WorkerRuntime::require_own(const Buffer& buffer, const std::string& name,
                                const std::source_location* where) const {
  if (static_cast<const ArenaBuffer&>(buffer).is_of(*pool_)) return;
  fail(Errc::invalid_argument,
       "{} ({}) is on the chips of a fit() that has ended or that another thread runs: make "
       "tensors and modules inside the loop, and take values out of the loop by report() or "
       "to_vector(){}",
       name.empty() ? "a tensor" : name, buffer.type().to_string(),
       where == nullptr ? "" : fmt::format(" (at {})", file_line(*where)));
}

void WorkerRuntime::end_step() {
  if (step_ == options_.resume_step) end_first_step();
  ++step_;
  for (LoopObserver* each : observers_) each->step_ended();
  pool_->begin_step(step_);
  set_log_step(step_);
  recorder_.board.step(step_);
  recorder_.events.step(step_);
  Permits& permits = link_.permits();
  const StateScope lease(recorder_, ActorState::lease, EventKind::lease, {.number = step_});
  if (const auto step = permits.lease_to_ask(step_)) link_.want_lease(*step);
  permits.begin_step(step_);
}

/// Uploads the checkpoint's state that no run has used yet, so that the job's versions contain it
/// from the first version on. Otherwise this state would be lost with a worker before its first
/// use, and the loop's initial value would replace it.
void WorkerRuntime::keep_unused() {
  for (const auto& [tensor, type, restored] : resume_from_->taken(mesh_)) {
    if (state_->find(tensor.name)) continue;
    Sharding sharding = restored.laid_out.value_or(Sharding::closed());
    sharding.open_mask = 0;
    const ProgramInput input{
        .kind = InputKind::opt_state, .name = tensor.name, .sharding = sharding};
    BufferPtr buffer =
        make_written_by_host(type, input, runs_ > kRunsUnderWay ? runs_ - kRunsUnderWay : 0);
    read_source(*std::get<SourcePtr>(restored.value), *buffer);
    state_->lies_in(state_->place(tensor.name, type, sharding, tensor.kind), buffer);
    unused_.emplace(tensor.name, std::move(buffer));
  }
}

void WorkerRuntime::end_first_step() {
  if (state_) state_->end_first_step();
  if (!resume_from_) return;
  if (state_) keep_unused();
  if (const std::string names = resume_from_->untaken(); !names.empty()) {
    warn(
        fmt::format("{}, from which the loop continues, has tensors that the loop doesn't have: {}",
                    resume_from_->file().path(), names));
  }
  if (const std::string names = resume_from_->made(); !names.empty()) {
    warn(
        fmt::format("{}, from which the loop continues, lacks state that the loop made itself, "
                    "which run.resume_partial allows: {}",
                    resume_from_->file().path(), names));
  }
  resume_from_.reset();
}

void WorkerRuntime::collect_metrics() {
  std::map<std::string, std::uint64_t> totals;
  for (const auto& [number, executed] : executed_) {
    for (const CollectiveSummary& collective : collectives(*executed.plan, mesh_)) {
      const std::string name =
          fmt::format("Collective.{}.{}", to_string(collective.kind), to_string(collective.tier));
      totals[name + ".Count"] += executed.runs;
      totals[name + ".Bytes"] += executed.runs * static_cast<std::uint64_t>(collective.bytes);
    }
  }
  for (const auto& [name, total] : totals) metrics().set(name, total);
  const DeviceProgress::Times times = devices_.front()->progress().times();
  metrics().set("ExecuteTime", times.ran);
  metrics().set("StepGap", times.idle);
}

void WorkerRuntime::changes_state(const StateChange& change) {
  for (LoopObserver* each : observers_) each->state_changes(change);
}

void WorkerRuntime::warn(const std::string& text) {
  if (options_.worker == 0) logger("weft.worker")->warn("{}", text);
}

void WorkerRuntime::require_loop_thread(const char* what, const std::source_location& where) const {
  const int here = ::gettid();
  if (here == loop_thread_) return;
  fail(Errc::invalid_argument,
       "{}: call it on the loop's thread, which is {}, but this is thread {}, which is another "
       "thread or runs a body of on_each_chip (at {})",
       what, loop_thread_, here, file_line(where));
}

void WorkerRuntime::drain() {
  if (!put_.tensors.empty()) tell_data({});
  const StateScope running(recorder_, ActorState::running);
  wait_for_run(runs_);
}

void WorkerRuntime::wait_for_run(std::uint64_t run) const {
  for (const auto& device : devices_) device->progress().wait(run);
}

}  // namespace weft
