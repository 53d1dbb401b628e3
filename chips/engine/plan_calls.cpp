#include "chips/engine/plan_calls.hpp"

#include <vector>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/plan/shared.hpp"
#include "spmd/program/permute.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {
namespace {

std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t size = 1;
  for (int dim = begin; dim < end; ++dim) size *= shape[dim];
  return size;
}

/// Sets `outer`, the number of runs of contiguous elements, to the product of the dims before
/// `dim`, and `count`, the number of elements in a run, to the product of the other dims. `local`
/// is the shape of the chip's shard.
void set_runs(CollectiveCall& call, const Shape& local, std::int64_t dim) {
  call.outer = product(local, 0, static_cast<int>(dim));
  call.count = product(local, static_cast<int>(dim), local.size());
}

void set_permute(CollectiveCall& call, std::span<const std::int64_t> attrs, const Mesh& mesh,
                 int position) {
  std::vector<AtomList> atoms;
  for (const std::int64_t bits : attrs) {
    atoms.push_back(AtomList::from_bits(static_cast<std::uint64_t>(bits)));
  }
  const std::span from(atoms.data(), atoms.size() / 2);
  const std::span to(from.data() + from.size(), from.size());
  const std::vector<int> sources = permute_sources(mesh, from, to);
  call.atoms = permute_atoms(mesh, from, to);
  for (const int member : mesh.group(position, call.atoms)) {
    const int source = sources[static_cast<std::size_t>(member)];
    call.from.push_back(static_cast<int>(mesh.index_in(source, call.atoms)));
  }
}

std::uint64_t offset_of(const Plan& plan, ValueId value, std::uint64_t shared_begin) {
  const Slot& slot = plan.slots[value];
  return (slot.place == Place::shared ? shared_begin : kArenaTempOffset) + slot.offset;
}

/// Returns the atoms that form the groups of a collective which has only one list of atoms.
AtomList group_of(const Program& program, OpId op) {
  return AtomList::from_bits(static_cast<std::uint64_t>(program.op_attrs(op)[0]));
}

CollectiveCall call_of_op(const Plan& plan, OpId op, const Mesh& mesh, int position,
                          std::uint64_t shared_begin) {
  const Program& program = plan.program;
  const ValueId source = program.op_operands(op)[0];
  const ValueId result = program.result(op);
  const auto attrs = program.op_attrs(op);
  CollectiveCall call;
  call.dtype = program.type(source).dtype;
  // If the source is a part of the result in memory, or the result a part of the source, both
  // offsets are the offset of the larger value. Thus the calls of all chips are equal.
  const bool is_added = is_added_by_loops(program, plan.slots, result);
  const bool is_part = plan.slots[source].place == Place::part;
  call.source = offset_of(plan, is_part ? result : source, shared_begin);
  call.destination = offset_of(plan, is_added ? source : result, shared_begin);
  call.shared = is_added || plan.slots[result].place == Place::shared;
  const OpKind kind = program.kind(op);
  if (kind == OpKind::collective_permute) {
    call.kind = CollectiveKind::permute;
    call.count = program.shape(source).num_elements();
    set_permute(call, attrs, mesh, position);
    return call;
  }
  call.atoms = group_of(program, op);
  switch (kind) {
    case OpKind::ppermute:
      call.kind = CollectiveKind::permute;
      call.count = program.shape(source).num_elements();
      for (const std::int64_t from : attrs.subspan(1)) call.from.push_back(static_cast<int>(from));
      break;
    case OpKind::all_reduce:
      call.kind = CollectiveKind::all_reduce;
      call.reduce = static_cast<ReduceKind>(attrs[1]);
      call.count = program.shape(source).num_elements();
      break;
    case OpKind::all_gather:
      call.kind = CollectiveKind::all_gather;
      set_runs(call, program.shape(source), attrs[1]);
      break;
    case OpKind::reduce_scatter:
      call.kind = CollectiveKind::reduce_scatter;
      call.reduce = static_cast<ReduceKind>(attrs[1]);
      set_runs(call, program.shape(result), attrs[2]);
      break;
    default:
      WEFT_CHECK(kind == OpKind::all_to_all, to_string(kind));
      call.kind = CollectiveKind::all_to_all;
      call.shape = program.shape(source);
      call.split_dim = static_cast<int>(attrs[1]);
      call.concat_dim = static_cast<int>(attrs[2]);
      break;
  }
  return call;
}

}  // namespace

CollectiveCall collective_call(const Plan& plan, const PlanStep& step, const Mesh& mesh,
                               int position, std::uint64_t shared_begin) {
  // The barrier is for the chips of one host, because only they share values in memory.
  if (step.kind == StepKind::barrier) {
    return {.atoms = mesh.list(static_cast<AtomMask>(mesh.all_atoms() & ~mesh.dcn_atoms()))};
  }
  CollectiveCall call = call_of_op(plan, step.first, mesh, position, shared_begin);
  if (step.count == 1) return call;
  const CollectiveCall last = call_of_op(plan, step.end() - 1, mesh, position, shared_begin);
  call.count =
      static_cast<std::int64_t>(last.source - call.source) / byte_size(call.dtype) + last.count;
  return call;
}

ChipPlace place_in_arena(const Plan& plan, ValueId value, const Mesh& mesh, int position,
                         std::uint64_t shared_begin) {
  const Program& program = plan.program;
  const Slot& slot = plan.slots[value];
  if (slot.place == Place::temp) {
    return {chip_on_host(mesh, position), offset_of(plan, value, shared_begin)};
  }
  const bool is_part = slot.place == Place::part;
  const ValueId whole = is_part ? static_cast<ValueId>(slot.offset) : value;
  const AtomList group = group_of(program, program.defining_op(whole));
  ChipPlace place{chip_on_host(mesh, mesh.group(position, group).front()),
                  offset_of(plan, whole, shared_begin)};
  if (is_part) {
    place.offset += static_cast<std::uint64_t>(mesh.index_in(position, group)) *
                    static_cast<std::uint64_t>(program.type(value).bytes());
  }
  return place;
}

std::vector<ChipPlace> addends_of(const Plan& plan, ValueId result, const Mesh& mesh,
                                  int position) {
  const Program& program = plan.program;
  const OpId scatter = program.defining_op(result);
  const AtomList group = group_of(program, scatter);
  const std::uint64_t offset = offset_of(plan, program.op_operands(scatter)[0], 0) +
                               static_cast<std::uint64_t>(mesh.index_in(position, group)) *
                                   static_cast<std::uint64_t>(program.type(result).bytes());
  std::vector<ChipPlace> places;
  for (const int member : mesh.group(position, group)) {
    places.push_back({chip_on_host(mesh, member), offset});
  }
  return places;
}

}  // namespace weft
