// The part of WorkerRuntime that allocates the next version of state and keeps the previous one.

#include <algorithm>

#include "actors/device/state_messages.hpp"
#include "actors/runtime/worker_runtime.hpp"

namespace weft {
namespace {

const ChipSet kNoChips;

bool may_be_overwritten(const Binding& binding) {
  const auto* bound = std::get_if<BoundBuffer>(&binding);
  return bound == nullptr || bound->may_be_overwritten();
}

}  // namespace

/// Returns for each output the chips that may write it over the input that it updates. A chip that
/// must keep the input's version may not.
std::vector<ChipSet> WorkerRuntime::overwriters(const Plan& plan) const {
  const Program& program = plan.program;
  std::vector<ChipSet> overwriters(program.outputs.size());
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    if (!plan.donated[i]) continue;
    const ProgramOutput& output = program.outputs[i];
    const ProgramInput& input = program.inputs[static_cast<std::size_t>(output.updates)];
    overwriters[i] = state_ ? state_->overwriters(input.name, output.sharding)
                            : ChipSet(positions_.size(), true);
  }
  return overwriters;
}

BufferPtr WorkerRuntime::next_version(const Executed& executed, std::size_t i,
                                      const Binding& binding, const BufferPtr& now) {
  const Plan& plan = *executed.plan;
  const ChipSet& may = may_be_overwritten(binding) ? executed.overwriters[i] : kNoChips;
  if (!state_) {
    if (are_all(may)) return now;
    try {
      return make_output(plan, i);
    } catch (const Error& e) {
      // The allocation failed only after all saves that held buffers had ended, so overwriting the
      // value may be allowed now.
      const bool is_freed = may_be_overwritten(binding) && are_all(executed.overwriters[i]);
      if (e.code() != Errc::no_space || !is_freed) throw;
      return now;
    }
  }
  const ProgramOutput& output = plan.program.outputs[i];
  return weft::next_version(std::static_pointer_cast<ArenaBuffer>(now), may, step_,
                            {.type = plan.output_types[i],
                             .sharding = output.sharding,
                             .bytes = plan.program.type(output.value).bytes()},
                            pool_);
}

/// Commits the step: from this run on, the job can return to the state of this step. Called by runs
/// that end a step or update state. Only the first call in a step commits, because the states
/// between the runs of a step are not versions. The state of the first step is already committed.
void WorkerRuntime::commit(DeviceRun& run) {
  if (!state_) return;
  if (step_ == options_.resume_step) state_->end_first_step();
  if (commits_ == step_) return;
  run.commit.is_awaited = state_->write(step_);
  commits_ = step_;
  const std::uint64_t every = options_.check_replicas_every;
  if (every == 0 || step_ % every != 0) return;
  const auto tell = [&link = link_, worker = options_.worker,
                     generation = options_.generation](const StateHash& hash) {
    for (const auto& message : to_messages(hash, worker, generation)) link.state_hashed(message);
  };
  run.hash = std::make_shared<StateHash>(step_, state_->live(), mesh_, positions_, tell);
}

/// Throws invalid_argument if the state that is recorded under an input's name belongs to another
/// tensor.
void WorkerRuntime::require_known(const Executed& executed, std::span<const Binding> inputs) const {
  if (!state_) return;
  const Program& program = executed.plan->program;
  const bool has_places = executed.places_revision == state_->revision();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ProgramInput& input = program.inputs[i];
    if (!is_state(input.kind)) continue;
    if (const auto* bound = std::get_if<BoundBuffer>(&inputs[i])) {
      const auto place = has_places ? std::optional(executed.places[i]) : state_->find(input.name);
      if (place) state_->require_same(*place, bound->buffer);
    } else {
      state_->require_untaken(input.name);
    }
  }
}

/// Records the buffers of the run's state inputs. Must be called before the step is committed,
/// because a value that the host has set since the previous run belongs to the version that this
/// run reads.
void WorkerRuntime::note_inputs(Executed& executed, std::span<const Binding> inputs,
                                const RunResult& result) {
  if (!state_) return;
  const Program& program = executed.plan->program;
  if (executed.places_revision != state_->revision()) {
    executed.places.assign(inputs.size(), 0);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ProgramInput& input = program.inputs[i];
      if (!is_state(input.kind)) continue;
      const auto known = state_->find(input.name);
      const bool is_known = known && std::holds_alternative<BoundBuffer>(inputs[i]);
      executed.places[i] = is_known ? *known
                                    : state_->place(input.name, executed.plan->input_types[i],
                                                    input.sharding, state_kind(input.kind));
    }
    executed.places_revision = state_->revision();
    executed.has_output_places = false;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_state(program.inputs[i].kind)) continue;
    state_->lies_in(executed.places[i], result.input_buffers[i]);
  }
}

void WorkerRuntime::note_outputs(Executed& executed, const RunResult& result) {
  if (!state_) return;
  const Program& program = executed.plan->program;
  // If commit() has forgotten tensors since note_inputs(), the recorded places aren't valid any
  // more.
  const bool has_places = executed.places_revision == state_->revision();
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ProgramOutput& output = program.outputs[i];
    if (output.updates < 0) continue;
    const auto updated = static_cast<std::size_t>(output.updates);
    std::size_t place = executed.places[updated];
    if (!has_places || !executed.has_output_places) {
      const ProgramInput& input = program.inputs[updated];
      place = state_->place(input.name, executed.plan->output_types[i], output.sharding,
                            state_kind(input.kind));
    }
    state_->lies_in(place, result.outputs[i]);
  }
  executed.has_output_places = has_places;
  if (has_places) executed.places_revision = state_->revision();
}

bool WorkerRuntime::has_restored(const std::string& name) const {
  if (resume_from_ != nullptr) return resume_from_->has(name);
  return state_ && state_->has_found(name);
}

Restored WorkerRuntime::take_restored(const std::string& name, const TensorType& type) {
  if (resume_from_ != nullptr) {
    return resume_from_->take(name, type, mesh_);
  }
  if (!state_) return {};
  BufferPtr kept = state_->take(name, type);
  return kept == nullptr ? Restored{} : Restored{.value = std::move(kept)};
}

}  // namespace weft
