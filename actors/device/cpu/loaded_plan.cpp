#include "actors/device/cpu/loaded_plan.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "actors/device/cpu/kernels/anomaly.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/bucket.hpp"
#include "spmd/plan/fuse.hpp"
#include "spmd/plan/lifetime.hpp"
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
        checks_(checks) {
    for (const Slot& slot : plan.slots) tiled_.push_back(slot.place == Place::tile);
  }

  CollectiveCall collective_call(OpId op) const;
  /// All of the bucket's operands, what lies between them included.
  CollectiveCall bucket_call(const Bucket& bucket) const;
  LoadedPlan::Step compute_step(OpId op) const;
  LoadedPlan::Loop loop(const FusedLoop& fused) const;
  bool is_tiled(ValueId value) const { return tiled_[value]; }
  /// Where the chip finds a value.
  LoadedPlan::Operand operand(ValueId value) const;

 private:
  const Plan& plan_;
  const Program& program_;
  const kernels::ChipContext& chip_;
  std::uint64_t shared_begin_;
  bool checks_;
  std::vector<bool> tiled_;  // by value
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

CollectiveCall PlanLoader::bucket_call(const Bucket& bucket) const {
  CollectiveCall call = collective_call(bucket.first);
  const CollectiveCall last = collective_call(bucket.first + bucket.count - 1);
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

LoadedPlan::Loop PlanLoader::loop(const FusedLoop& fused) const {
  LoadedPlan::Loop loop;
  loop.num_elements = program_.type(program_.result(fused.first)).num_elements();
  const std::map<ValueId, std::uint32_t> buffers = tile_buffers(program_, fused, tiled_);
  const auto tile_bytes = [&](ValueId value) {
    return static_cast<std::uint64_t>(LoadedPlan::kTileSize *
                                      byte_size(program_.type(value).dtype));
  };
  std::uint64_t buffer_bytes = 0;
  for (const auto& [value, buffer] : buffers) {
    buffer_bytes = std::max(buffer_bytes, tile_bytes(value));
  }
  const auto place = [&](ValueId value, LoadedPlan::Operand& operand) {
    if (tiled_[value]) {
      operand.offset = buffers.at(value) * buffer_bytes;
      loop.scratch_bytes = std::max(loop.scratch_bytes, operand.offset + buffer_bytes);
    } else {
      operand.tile_bytes = tile_bytes(value);
    }
  };
  for (const auto& [value, buffer] : buffers) {
    const OpId maker = program_.defining_op(value);
    if (!program_.is_fill(maker)) continue;
    loop.fills.push_back(compute_step(maker));
    place(value, loop.fills.back().result);
  }
  for (OpId op = fused.first; op < fused.first + fused.count; ++op) {
    if (!is_elementwise(program_.kind(op))) continue;
    LoadedPlan::Step& step = loop.steps.emplace_back(compute_step(op));
    const auto operands = program_.op_operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) place(operands[i], step.operands[i]);
    place(program_.result(op), step.result);
  }
  return loop;
}

/// A step writes the next version of a parameter or of optimizer state.
struct Update {
  std::size_t step = 0;
  std::size_t output = 0;
  std::size_t bytes = 0;
};

/// Behind the collectives nobody waits: by them, all chips have come as far. So what an optimizer
/// counts before it has any gradient is held back until then.
void place_wait(LoadedPlan& loaded, const std::vector<Update>& updates) {
  loaded.first_update = updates.empty() ? std::numeric_limits<std::size_t>::max()  // never
                                        : loaded.steps.size();
  std::size_t last_call = 0;
  for (std::size_t step = 0; step < loaded.steps.size(); ++step) {
    if (loaded.steps[step].call >= 0) last_call = step;
  }
  std::size_t held = 0;
  for (const Update& update : updates) {
    if (update.step >= last_call || held + update.bytes > LoadedPlan::kHeldBytes) {
      loaded.first_update = update.step;
      break;
    }
    loaded.held.push_back({update.output, held, update.bytes});
    held += (update.bytes + 63) / 64 * 64;
  }
  // What the step at the wait writes is in place at once.
  std::erase_if(loaded.held, [&](const LoadedPlan::Held& output) {
    return std::ranges::any_of(updates, [&](const Update& update) {
      return update.output == output.output && update.step >= loaded.first_update;
    });
  });
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
  std::vector<Update> updates;
  const auto note_update = [&](const LoadedPlan::Operand& result) {
    if (result.place != Place::output || program.outputs[result.offset].updates < 0) return;
    const std::int64_t bytes = program.type(program.outputs[result.offset].value).bytes();
    updates.push_back({loaded.steps.size() - 1, result.offset, static_cast<std::size_t>(bytes)});
  };
  const auto add_step = [&](OpId op) {
    loaded.steps.push_back(loader.compute_step(op));
    note_update(loaded.steps.back().result);
    loaded.scratch_bytes = std::max(loaded.scratch_bytes, loaded.steps.back().kernel.scratch_bytes);
  };
  const auto add_loop = [&](const FusedLoop& fused) {
    for (OpId op = fused.first; op < fused.first + fused.count; ++op) {
      const bool is_stored = !loader.is_tiled(program.result(op));
      if (program.is_fill(op) && is_stored) add_step(op);
    }
    loaded.steps.push_back({.loop = static_cast<std::int32_t>(loaded.loops.size())});
    loaded.loops.push_back(loader.loop(fused));
    for (const LoadedPlan::Step& step : loaded.loops.back().steps) note_update(step.result);
    loaded.scratch_bytes = std::max(loaded.scratch_bytes, loaded.loops.back().scratch_bytes);
  };
  const std::vector<Bucket> all_reduces = buckets(program);
  const std::vector<FusedLoop> loops = fused_loops(program);
  auto bucket = all_reduces.begin();
  auto loop = loops.begin();
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (is_collective(program.kind(op))) {
      CollectiveCall call;
      if (program.kind(op) == OpKind::all_reduce) {
        call = loader.bucket_call(*bucket);
        op = bucket->first + bucket->count - 1;
        ++bucket;
      } else {
        call = loader.collective_call(op);
      }
      call.name = summaries.at(loaded.calls.size()).value;
      if (call.shared) loaded.shared_in.push_back(loader.operand(program.result(op)).chip);
      add_call(call);
    } else if (is_elementwise(program.kind(op))) {
      add_loop(*loop);
      op = loop->first + loop->count - 1;
      ++loop;
    } else if (!loader.is_tiled(program.result(op))) {
      add_step(op);
    }
  }
  if (const AtomMask all = final_meeting(plan, mesh); all != 0) {
    add_call({.atoms = mesh.list(all), .name = "shared values are read"});
  }
  place_wait(loaded, updates);
  return loaded;
}

}  // namespace weft
