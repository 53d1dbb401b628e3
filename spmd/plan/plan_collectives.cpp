#include "spmd/ops/row.hpp"
#include "spmd/plan/plan.hpp"

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

/// Returns the names of the mask's axes. For an axis that is only partly in the mask, returns its
/// atoms: "data:0".
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
    for (int i = 0; i < atoms.size(); ++i) {
      if ((mask >> atoms[i]) & 1U) axes.push_back(fmt::format("{}:{}", name, i));
    }
  }
  return axes;
}

/// Returns the op or input from which the value comes, past copies, barriers and collectives.
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

}  // namespace

std::vector<CollectiveSummary> collectives(const Plan& plan, const Mesh& mesh) {
  const Program& program = plan.program;
  std::vector<CollectiveSummary> summaries;
  for (const PlanStep& step : plan.steps) {
    if (step.kind != StepKind::collective) continue;
    const OpKind kind = program.kind(step.first);
    const ValueId operand = program.op_operands(step.first)[0];
    const AtomMask atoms = group_atoms(program, step.first);
    CollectiveSummary& summary = summaries.emplace_back(
        CollectiveSummary{kind, axes_of(mesh, atoms), 0, origin(program, operand), atoms});
    if (step.count > 1) summary.value += fmt::format(" and {} more", step.count - 1);
    for (OpId op = step.first; op < step.end(); ++op) {
      const bool grows = kind == OpKind::all_gather;
      summary.bytes +=
          program.type(grows ? program.result(op) : program.op_operands(op)[0]).bytes();
    }
  }
  return summaries;
}

}  // namespace weft
