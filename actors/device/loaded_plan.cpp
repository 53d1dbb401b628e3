#include <weft/actors/device/loaded_plan.hpp>

#include <algorithm>

#include <weft/spmd/program/permute.hpp>

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

CollectiveCall collective_call(const Plan& plan, OpId op, const kernels::ChipContext& chip) {
  const Program& program = plan.program;
  const ValueId operand = program.op_operands(op)[0];
  const ValueId result = program.result(op);
  const auto attrs = program.op_attrs(op);
  CollectiveCall call;
  call.dtype = program.type(operand).dtype;
  call.source = kArenaTempOffset + plan.slots[operand].offset;
  call.destination = kArenaTempOffset + plan.slots[result].offset;
  const OpKind kind = program.kind(op);
  if (kind == OpKind::collective_permute) {
    call.kind = CollectiveKind::permute;
    call.count = program.shape(operand).num_elements();
    set_permute(call, attrs, chip);
    return call;
  }
  call.atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[0]));
  switch (kind) {
    case OpKind::all_reduce:
      call.kind = CollectiveKind::all_reduce;
      call.reduce = static_cast<ReduceKind>(attrs[1]);
      call.count = program.shape(operand).num_elements();
      break;
    case OpKind::all_gather:
      call.kind = CollectiveKind::all_gather;
      set_runs(call, program.shape(operand), attrs[1]);
      break;
    case OpKind::reduce_scatter:
      call.kind = CollectiveKind::reduce_scatter;
      call.reduce = static_cast<ReduceKind>(attrs[1]);
      set_runs(call, program.shape(result), attrs[2]);
      break;
    default:
      WEFT_CHECK(kind == OpKind::all_to_all, to_string(kind));
      call.kind = CollectiveKind::all_to_all;
      call.shape = program.shape(operand);
      call.split_dim = static_cast<int>(attrs[1]);
      call.concat_dim = static_cast<int>(attrs[2]);
      break;
  }
  return call;
}

LoadedPlan::Step compute_step(const Plan& plan, OpId op, const kernels::ChipContext& chip) {
  LoadedPlan::Step step;
  step.kernel = kernels::prepare(plan.program, op, chip);
  for (const ValueId operand : plan.program.op_operands(op)) {
    step.operands[static_cast<std::size_t>(step.num_operands++)] = plan.slots[operand];
  }
  step.result = plan.slots[plan.program.result(op)];
  return step;
}

}  // namespace

LoadedPlan load_plan(const Plan& plan, const kernels::ChipContext& chip,
                     Communicator& communicator) {
  const Mesh& mesh = chip.mesh;
  if (plan.mesh_shape != mesh.shape() || plan.axis_names != mesh.axis_names()) {
    fail(Errc::mesh_mismatch, "the plan is for the mesh {}, this chip is in the mesh {}",
         Mesh(plan.mesh_shape, plan.axis_names).to_string(), mesh.to_string());
  }
  verify(plan, mesh);
  const Program& program = plan.program;
  const std::vector<CollectiveSummary> summaries = collectives(plan, mesh);
  LoadedPlan loaded;
  loaded.num_inputs = program.inputs.size();
  loaded.num_outputs = program.outputs.size();
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (is_collective(program.kind(op))) {
      loaded.steps.push_back({.call = static_cast<std::int32_t>(loaded.calls.size())});
      CollectiveCall call = collective_call(plan, op, chip);
      call.name = summaries.at(loaded.calls.size()).value;
      loaded.calls.push_back(communicator.prepare(call));
    } else {
      loaded.steps.push_back(compute_step(plan, op, chip));
      loaded.scratch_bytes =
          std::max(loaded.scratch_bytes, loaded.steps.back().kernel.scratch_bytes);
    }
  }
  return loaded;
}

}  // namespace weft
