#include "actors/device/cpu/loaded_plan.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "actors/device/cpu/kernels/anomaly.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/lifetime.hpp"
#include "spmd/plan/schedule.hpp"
#include "spmd/program/permute.hpp"

namespace weft {
namespace {

std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t size = 1;
  for (int dim = begin; dim < end; ++dim) size *= shape[dim];
  return size;
}

/// The dims before `dim` are the call's outer loop; of `local`, a chip's part, the rest is one run.
void set_runs(CollectiveCall& call, const Shape& local, std::int64_t dim) {
  call.outer = product(local, 0, static_cast<int>(dim));
  call.count = product(local, static_cast<int>(dim), local.size());
}

void set_permute(CollectiveCall& call, std::span<const std::int64_t> attrs,
                 const kernels::ChipContext& chip) {
  std::vector<AtomList> atoms;
  for (const std::int64_t bits : attrs) {
    atoms.push_back(AtomList::from_bits(static_cast<std::uint64_t>(bits)));
  }
  const std::span from(atoms.data(), atoms.size() / 2);
  const std::span to(from.data() + from.size(), from.size());
  const std::vector<int> sources = permute_sources(chip.mesh, from, to);
  call.atoms = permute_atoms(chip.mesh, from, to);
  for (const int member : chip.mesh.group(chip.position, call.atoms)) {
    const int source = sources[static_cast<std::size_t>(member)];
    call.from.push_back(static_cast<int>(chip.mesh.index_in(source, call.atoms)));
  }
}

/// Turns the ops of a plan into steps of one chip.
class PlanLoader {
 public:
  PlanLoader(const Plan& plan, const kernels::ChipContext& chip, std::uint64_t shared_begin,
             bool checks)
      : plan_(plan),
        program_(plan.program),
        chip_(chip),
        shared_begin_(shared_begin),
        checks_(checks) {}

  /// All operands of a bucket, with the alignment's bytes between them.
  CollectiveCall collective_call(const PlanStep& step) const;
  LoadedPlan::Step compute_step(OpId op) const;
  /// Of the step of this number.
  LoadedPlan::Loop loop(std::size_t step) const;
  /// Where the chip finds a value.
  LoadedPlan::Operand operand(ValueId value) const;

 private:
  CollectiveCall collective_call(OpId op) const;

  const Plan& plan_;
  const Program& program_;
  const kernels::ChipContext& chip_;
  std::uint64_t shared_begin_;
  bool checks_;
};

LoadedPlan::Operand PlanLoader::operand(ValueId value) const {
  const Slot& slot = plan_.slots[value];
  const int own = chip_.mesh.device_at(chip_.position);
  switch (slot.place) {
    case Place::input:
    case Place::output: return {slot.place, own, slot.offset};
    case Place::temp: return {slot.place, own, kArenaTempOffset + slot.offset};
    case Place::tile: return {slot.place, own, 0};
    case Place::shared: break;
  }
  const std::int64_t atoms = program_.op_attrs(program_.defining_op(value))[0];
  const AtomList group = AtomList::from_bits(static_cast<std::uint64_t>(atoms));
  const int first = chip_.mesh.group(chip_.position, group).front();
  return {slot.place, chip_.mesh.device_at(first), shared_begin_ + slot.offset};
}

CollectiveCall PlanLoader::collective_call(OpId op) const {
  const ValueId source = program_.op_operands(op)[0];
  const ValueId result = program_.result(op);
  const auto attrs = program_.op_attrs(op);
  CollectiveCall call;
  call.dtype = program_.type(source).dtype;
  call.source = operand(source).offset;
  call.destination = operand(result).offset;
  call.shared = plan_.slots[result].place == Place::shared;
  const OpKind kind = program_.kind(op);
  if (kind == OpKind::collective_permute) {
    call.kind = CollectiveKind::permute;
    call.count = program_.shape(source).num_elements();
    set_permute(call, attrs, chip_);
    return call;
  }
  call.atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[0]));
  switch (kind) {
    case OpKind::all_reduce:
      call.kind = CollectiveKind::all_reduce;
      call.reduce = static_cast<ReduceKind>(attrs[1]);
      call.count = program_.shape(source).num_elements();
      break;
    case OpKind::all_gather:
      call.kind = CollectiveKind::all_gather;
      set_runs(call, program_.shape(source), attrs[1]);
      break;
    case OpKind::reduce_scatter:
      call.kind = CollectiveKind::reduce_scatter;
      call.reduce = static_cast<ReduceKind>(attrs[1]);
      set_runs(call, program_.shape(result), attrs[2]);
      break;
    default:
      WEFT_CHECK(kind == OpKind::all_to_all, to_string(kind));
      call.kind = CollectiveKind::all_to_all;
      call.shape = program_.shape(source);
      call.split_dim = static_cast<int>(attrs[1]);
      call.concat_dim = static_cast<int>(attrs[2]);
      break;
  }
  return call;
}

CollectiveCall PlanLoader::collective_call(const PlanStep& step) const {
  CollectiveCall call = collective_call(step.first);
  if (step.count == 1) return call;
  const CollectiveCall last = collective_call(step.end() - 1);
  call.count =
      static_cast<std::int64_t>(last.source - call.source) / byte_size(call.dtype) + last.count;
  return call;
}

LoadedPlan::Step PlanLoader::compute_step(OpId op) const {
  LoadedPlan::Step step;
  step.kernel = kernels::prepare(program_, op, chip_);
  if (checks_) step.kernel = kernels::checked(std::move(step.kernel), program_, op);
  for (const ValueId value : program_.op_operands(op)) {
    step.operands[static_cast<std::size_t>(step.num_operands++)] = operand(value);
  }
  step.result = operand(program_.result(op));
  return step;
}

LoadedPlan::Loop PlanLoader::loop(std::size_t number) const {
  const PlanStep& fused = plan_.steps[number];
  LoadedPlan::Loop loop;
  loop.num_elements = program_.type(program_.result(fused.first)).num_elements();
  const auto tile_bytes = [&](ValueId value) {
    return static_cast<std::uint64_t>(LoadedPlan::kTileSize *
                                      byte_size(program_.type(value).dtype));
  };
  const std::span<const TileBuffer> tiles = tile_buffers_of(plan_, number);
  std::uint64_t buffer_bytes = 0;
  for (const TileBuffer& tile : tiles)
    buffer_bytes = std::max(buffer_bytes, tile_bytes(tile.value));
  std::map<ValueId, std::uint64_t> offsets;  // in the scratch memory
  for (const TileBuffer& tile : tiles) {
    offsets[tile.value] = tile.buffer * buffer_bytes;
    loop.scratch_bytes = std::max(loop.scratch_bytes, offsets[tile.value] + buffer_bytes);
  }
  const auto place = [&](ValueId value, LoadedPlan::Operand& operand) {
    if (operand.place == Place::tile) {
      operand.offset = offsets.at(value);
    } else {
      operand.tile_bytes = tile_bytes(value);
    }
  };
  for (const auto& [value, offset] : offsets) {
    const OpId maker = program_.defining_op(value);
    if (!program_.is_fill(maker)) continue;
    loop.fills.push_back(compute_step(maker));
    place(value, loop.fills.back().result);
  }
  for (OpId op = fused.first; op < fused.end(); ++op) {
    if (!is_elementwise(program_.kind(op))) continue;
    LoadedPlan::Step& step = loop.steps.emplace_back(compute_step(op));
    const auto operands = program_.op_operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) place(operands[i], step.operands[i]);
    place(program_.result(op), step.result);
  }
  return loop;
}

}  // namespace

LoadedPlan load_plan(const Plan& plan, const kernels::ChipContext& chip, Communicator& communicator,
                     std::uint64_t shared_begin, bool checks) {
  const Mesh& mesh = chip.mesh;
  if (plan.mesh_shape != mesh.shape() || plan.axis_names != mesh.axis_names()) {
    fail(Errc::mesh_mismatch, "the plan is for the mesh {}, this chip is in the mesh {}",
         Mesh(plan.mesh_shape, plan.axis_names).to_string(), mesh.to_string());
  }
  verify(plan, mesh);
  const Program& program = plan.program;
  const PlanLoader loader(plan, chip, shared_begin, checks);
  const std::vector<CollectiveSummary> summaries = collectives(plan, mesh);
  LoadedPlan loaded;
  loaded.num_inputs = program.inputs.size();
  loaded.num_outputs = program.outputs.size();
  const auto add_call = [&](const CollectiveCall& call) {
    loaded.steps.push_back({.call = static_cast<std::int32_t>(loaded.calls.size())});
    loaded.calls.push_back(communicator.prepare(call));
  };
  auto summary = summaries.begin();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    switch (step.kind) {
      case StepKind::compute:
        loaded.steps.push_back(loader.compute_step(step.first));
        loaded.scratch_bytes =
            std::max(loaded.scratch_bytes, loaded.steps.back().kernel.scratch_bytes);
        break;
      case StepKind::loop:
        loaded.steps.push_back({.loop = static_cast<std::int32_t>(loaded.loops.size())});
        loaded.loops.push_back(loader.loop(i));
        loaded.scratch_bytes = std::max(loaded.scratch_bytes, loaded.loops.back().scratch_bytes);
        break;
      case StepKind::collective: {
        CollectiveCall call = loader.collective_call(step);
        call.name = (summary++)->value;
        if (call.shared) {
          loaded.shared_in.push_back(loader.operand(program.result(step.first)).chip);
        }
        add_call(call);
        break;
      }
      case StepKind::barrier:
        add_call({.atoms = mesh.list(mesh.all_atoms()), .name = "shared values are read"});
        break;
      case StepKind::update_wait: loaded.first_update = loaded.steps.size(); break;
    }
  }
  std::size_t held_bytes = 0;
  for (const std::uint32_t output : plan.held) {
    const TensorType& type = program.type(program.outputs[output].value);
    loaded.held.push_back({output, held_bytes, static_cast<std::size_t>(type.bytes())});
    held_bytes += slot_bytes(type);
  }
  return loaded;
}

}  // namespace weft
