#include <algorithm>

#include "spmd/ops/row.hpp"
#include "spmd/plan/overlap.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/plan/step_cost.hpp"
#include "spmd/program/permute.hpp"

namespace weft {
namespace {

AtomList atoms_at(std::span<const std::int64_t> attrs, std::size_t i) {
  return AtomList::from_bits(static_cast<std::uint64_t>(attrs[i]));
}

AtomMask group_atoms(const Program& program, OpId op) {
  const auto attrs = program.op_attrs(op);
  if (program.kind(op) != OpKind::collective_permute) return atoms_at(attrs, 0).mask();
  AtomMask mask = 0;
  const std::size_t num_dims = attrs.size() / 2;
  for (std::size_t dim = 0; dim < num_dims; ++dim) {
    const AtomList from = atoms_at(attrs, dim);
    const AtomList to = atoms_at(attrs, num_dims + dim);
    if (from != to) mask = static_cast<AtomMask>(mask | from.mask() | to.mask());
  }
  return mask;
}

/// Returns the names of the mask's axes. If only one tier of an axis is in the mask, the name
/// contains the tier ("data:ici"). If the mask has only some atoms of an axis, the name contains
/// the atoms ("data:0").
std::vector<std::string> axes_of(const Mesh& mesh, AtomMask mask) {
  std::vector<std::string> axes;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const std::string& name = mesh.axis_names()[static_cast<std::size_t>(axis)];
    const AtomList atoms = mesh.axis_atoms(axis);
    if (atoms.empty()) continue;
    if ((mask & atoms.mask()) == atoms.mask()) {
      axes.push_back(name);
      continue;
    }
    const auto between = static_cast<AtomMask>(atoms.mask() & mesh.dcn_atoms());
    const auto in_mask = static_cast<AtomMask>(atoms.mask() & mask);
    if (between != 0 && (in_mask == between || (in_mask ^ between) == atoms.mask())) {
      axes.push_back(fmt::format("{}:{}", name, to_string(tier_of(in_mask, mesh))));
      continue;
    }
    for (int i = 0; i < atoms.size(); ++i) {
      if ((mask >> atoms[i]) & 1U) axes.push_back(fmt::format("{}:{}", name, i));
    }
  }
  return axes;
}

/// Follows the value back through copies, barriers and collectives, and describes the op or input
/// where it ends.
std::string origin(const Program& program, ValueId value) {
  OpId op = program.defining_op(value);
  while (op != kNoId && moves_only(program.kind(op))) {
    value = program.op_operands(op)[0];
    op = program.defining_op(value);
  }
  if (op == kNoId) {
    for (const ProgramInput& input : program.inputs) {
      if (input.value == value) return fmt::format("input \"{}\"", input.name);
    }
  }
  const std::string_view kind = to_string(program.kind(op));
  const std::string& loc = program.loc(op);
  return loc.empty() ? std::string(kind) : fmt::format("{} at {}", kind, loc);
}

/// Returns the number of chips of the mesh that receive data from another host in the permute.
std::int64_t permutes_between_hosts(const Program& program, OpId op, const Mesh& mesh) {
  const auto attrs = program.op_attrs(op);
  std::vector<int> sources;  // indexed by position
  if (program.kind(op) == OpKind::ppermute) {
    for (int position = 0; position < mesh.size(); ++position) {
      const AtomList atoms = atoms_at(attrs, 0);
      const auto from = static_cast<std::size_t>(
          attrs[1 + static_cast<std::size_t>(mesh.index_in(position, atoms))]);
      sources.push_back(mesh.group(position, atoms)[from]);
    }
  } else {
    std::vector<AtomList> sides;
    for (std::size_t i = 0; i < attrs.size(); ++i) sides.push_back(atoms_at(attrs, i));
    const std::span<const AtomList> all(sides);
    sources = permute_sources(mesh, all.first(sides.size() / 2), all.last(sides.size() / 2));
  }
  const AtomList hosts = mesh.list(mesh.dcn_atoms());
  std::int64_t count = 0;
  for (int position = 0; position < mesh.size(); ++position) {
    const int source = sources[static_cast<std::size_t>(position)];
    if (mesh.index_in(position, hosts) != mesh.index_in(source, hosts)) ++count;
  }
  return count;
}

/// Returns the bytes that each host sends to others. Except in a permute, all chips of a host take
/// part in the collective and send the same number of bytes.
std::int64_t dcn_bytes(const Program& program, OpId op, const CollectiveSummary& summary,
                       const Mesh& mesh) {
  if (summary.tier == Tier::ici) return 0;
  const std::int64_t hosts = mesh.count(mesh.dcn_atoms());
  const bool is_permute = meeting_atoms(program, op) == 0;
  if (is_permute) return summary.bytes * permutes_between_hosts(program, op, mesh) / hosts;
  const auto group = static_cast<int>(mesh.count(summary.atoms));
  const double of_chip = traffic_bytes(summary.kind, summary.bytes, group);
  return static_cast<std::int64_t>(of_chip * static_cast<double>(mesh.size() / hosts));
}

}  // namespace

std::vector<CollectiveSummary> collectives(const Plan& plan, const Mesh& mesh) {
  const Program& program = plan.program;
  std::vector<CollectiveSummary> summaries;
  const std::vector<Flight> all = flights(plan.steps);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (step.kind != StepKind::collective) continue;
    const auto flight = std::ranges::find(all, i, &Flight::start);
    const OpKind kind = program.kind(step.first);
    const ValueId operand = program.op_operands(step.first)[0];
    const AtomMask atoms = group_atoms(program, step.first);
    CollectiveSummary& summary =
        summaries.emplace_back(CollectiveSummary{.kind = kind,
                                                 .axes = axes_of(mesh, atoms),
                                                 .value = origin(program, operand),
                                                 .atoms = atoms,
                                                 .start = i,
                                                 .end = flight == all.end() ? i : flight->wait});
    if (step.count > 1) summary.value += fmt::format(" and {} more", step.count - 1);
    for (OpId op = step.first; op < step.end(); ++op) {
      const bool grows = kind == OpKind::all_gather;
      summary.bytes +=
          program.type(grows ? program.result(op) : program.op_operands(op)[0]).bytes();
    }
    summary.tier = tier_of(atoms, mesh);
    summary.dcn_bytes = dcn_bytes(program, step.first, summary, mesh);
  }
  return summaries;
}

}  // namespace weft
